// Host memory with a type: what goes into and comes out of programs, constants and checkpoints.
#pragma once

#include <cstring>
#include <memory>
#include <span>

#include <millrace/type.h>

namespace millrace {

/// A dense, row-major host array that shares its memory between copies. Alignment is 64 bytes.
class Array {
 public:
  Array() = default;
  /// Zero-filled. Throws TypeError when the shape is not static or the type has a fault(), Error when there is no memory.
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

  void* data() { return data_.get(); }
  const void* data() const { return data_.get(); }
  /// Elements as T, which must be the dtype's C++ type (float, double, int8_t, uint8_t, int32_t, int64_t; uint16_t for
  /// bf16 and f16; bool as uint8_t).
  template <typename T>
  std::span<T> as() {
    return {static_cast<T*>(data()), static_cast<size_t>(count_)};
  }
  template <typename T>
  std::span<const T> as() const {
    return {static_cast<const T*>(data()), static_cast<size_t>(count_)};
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
  Array converted(DType dtype) const;
  /// Same type and the same bytes.
  bool identical(const Array& other) const;

 private:
  Type type_;
  int64_t count_ = 0;
  std::shared_ptr<void> data_;
};

/// Bit conversions of the 16-bit floats, round to nearest even.
float bf16_to_float(uint16_t bits);
uint16_t float_to_bf16(float value);
float f16_to_float(uint16_t bits);
uint16_t float_to_f16(float value);

}  // namespace millrace
