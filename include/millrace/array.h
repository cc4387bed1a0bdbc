// Host memory with a type: what goes into and comes out of programs, constants and checkpoints.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include <millrace/type.h>

namespace millrace {

/// A dense, row-major host array that shares its memory between copies. Alignment is 64 bytes.
class Array {
 public:
  Array() = default;
  /// Zero-filled. Throws TypeError when the shape is not static or the type has a fault(), Error when there
  /// is no memory.
  explicit Array(Type type);
  Array(DType dtype, const Shape& shape) : Array(Type{dtype, shape}) {}
  /// A view of foreign memory that `owner` keeps alive.
  Array(Type type, void* data, std::shared_ptr<void> owner);

  /// A copy of `values` (converted to `dtype`, row-major); TypeError when the count does not match the shape.
  static Array of(DType dtype, const Shape& shape, std::span<const double> values);
  static Array scalar(DType dtype, double value) { return of(dtype, {}, std::span(&value, 1)); }
  /// Every element equal to `value`.
  static Array full(DType dtype, const Shape& shape, double value);

  const Type& type() const { return type_; }
  DType dtype() const { return type_.dtype; }
  const Shape& shape() const { return type_.shape; }
  int64_t count() const { return count_; }
  int64_t bytes() const { return count_ * type_.dtype.bytes(); }
  bool empty() const { return !data_; }

  /// Of an array that is not const: a pointer to write through, now and later, so that the memory has no
  /// stamp() from then on.
  void* data() {
    if (memory_ && !memory_->exposed.load(std::memory_order_relaxed))
      memory_->exposed.store(true, std::memory_order_release);
    return ready();
  }
  const void* data() const { return ready(); }
  /// Elements as T, which must be the dtype's C++ type (float, double, int8_t, uint8_t, int32_t, int64_t;
  /// uint16_t for bf16 and f16; bool as uint8_t).
  template <typename T>
  std::span<T> as() {
    return {static_cast<T*>(data()), static_cast<size_t>(count_)};
  }
  template <typename T>
  std::span<const T> as() const {
    return {static_cast<const T*>(data()), static_cast<size_t>(count_)};
  }
  /// Lets `write` change the elements, a std::span<T> that it must not keep: the memory has a new stamp()
  /// then.
  template <typename T, typename Write>
  void edit(Write&& write) {
    write(std::span<T>(static_cast<T*>(ready()), static_cast<size_t>(count_)));
    mark_written();
  }
  /// Takes over the elements of an array of the same type; TypeError when it has another.
  void assign(const Array& from);

  /// Says which memory this is and how often it was written: equal stamps, equal elements. Nullopt where that
  /// cannot be known, because a pointer to write through was handed out (data(), as()) or the memory is
  /// foreign.
  struct Stamp {
    uint64_t memory = 0, version = 0;
    bool operator==(const Stamp&) const = default;
  };
  std::optional<Stamp> stamp() const;
  /// To be called by code that writes by other ways than this class, before the elements are read again.
  void mark_written() const {
    if (memory_ && !memory_->written.load(std::memory_order_relaxed))
      memory_->written.store(true, std::memory_order_release);
  }

  /// Element i (row-major) as a double; i64 beyond 2^53 loses bits.
  double at(int64_t i) const;
  void set(int64_t i, double value);
  int64_t int_at(int64_t i) const;
  void set_int(int64_t i, int64_t value);
  std::vector<double> to_doubles() const;

  Array clone() const;
  /// The same memory; TypeError when the count does not match the shape.
  Array reshaped(const Shape& shape) const;
  bool shares_memory(const Array& other) const { return data_ == other.data_; }
  Array converted(DType dtype) const;
  /// Same type and the same bytes.
  bool identical(const Array& other) const;

 private:
  friend struct LateArrays;  // ir/late_array.h
  struct Late;
  /// What all arrays over the same memory share.
  struct Memory {
    Memory(std::shared_ptr<void> kept_alive, bool foreign);
    const std::shared_ptr<void> owner;
    const uint64_t id;
    std::atomic<uint64_t> version{0};
    std::atomic<bool> written{false}, exposed, late{false};  // late: nobody has asked for the elements yet
    std::shared_ptr<Late> how;                               // they come by then
  };
  /// Where the elements are, which come now if they are late.
  void* ready() const {
    if (memory_ && memory_->late.load(std::memory_order_acquire)) fetch();
    return data_;
  }
  void fetch() const;
  /// The elements as T, to write one.
  template <typename T>
  T* elements() {
    mark_written();
    return static_cast<T*>(ready());
  }

  Type type_;
  int64_t count_ = 0;
  std::shared_ptr<Memory> memory_;
  void* data_ = nullptr;
};

/// Bit conversions of the 16-bit floats, round to nearest even.
float bf16_to_float(uint16_t bits);
uint16_t float_to_bf16(float value);
float f16_to_float(uint16_t bits);
uint16_t float_to_f16(float value);

}  // namespace millrace
