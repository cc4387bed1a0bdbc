#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <millrace/array.h>
#include <millrace/narrow_types.h>

#include "base/format.h"
#include "ir/whole_numbers.h"

namespace millrace {
namespace {

constexpr size_t kLine = 64;  // bytes

[[noreturn]] void no_memory(size_t bytes) {
  fail<Error>("{:.1f} MB of memory for an array could not be had", static_cast<double>(bytes) / 1e6);
}

/// Large arrays ask for huge pages: tables are read in rows that lie anywhere.
std::shared_ptr<void> allocate(size_t bytes) {
  const size_t page = bytes < (64 << 20) ? kLine : 2 << 20;
  const size_t rounded = (bytes + page - 1) / page * page;
  void* const data = std::aligned_alloc(page, rounded);
  if (!data) no_memory(bytes);
  if (page > kLine) madvise(data, rounded, MADV_HUGEPAGE);
  std::memset(data, 0, rounded);
  return {data, std::free};
}

/// Small arrays, such as scalars and the results of small networks, are one block with what is shared of
/// them: the result of a run of a microsecond is not worth three. A larger block would be none of those that
/// glibc keeps at hand for each thread, up to 1,032 bytes.
constexpr size_t kSmall = 896;

/// Allocates a T with `bytes` of an array behind it, of which `data` tells the place.
template <typename T>
struct WithArray {
  using value_type = T;
  size_t bytes;
  void** data;

  WithArray(size_t count, void** place) : bytes(count), data(place) {}
  template <typename Other>
  WithArray(const WithArray<Other>& other) : bytes(other.bytes), data(other.data) {}  // NOLINT: rebinding

  T* allocate(size_t count) {
    static_assert(alignof(T) <= alignof(std::max_align_t));
    const size_t rounded = (bytes + kLine - 1) / kLine * kLine;
    void* const block = std::malloc(count * sizeof(T) + kLine + rounded);
    if (!block) no_memory(bytes);
    *data = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(block) + count * sizeof(T) + kLine - 1) &
                                    ~(kLine - 1));
    std::memset(*data, 0, rounded);
    return static_cast<T*>(block);
  }
  void deallocate(T* block, size_t /*count*/) { std::free(block); }
  template <typename Other>
  bool operator==(const WithArray<Other>&) const {
    return true;
  }
};

uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

Type storable(Type type) {
  if (const std::string fault = type.fault(); !fault.empty())
    fail<TypeError>("an array of this type cannot be: {}", fault);
  return type;
}

}  // namespace

float bf16_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t float_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);  // NaN stays NaN
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

namespace {

// The CPU's own conversions: libgcc's take several times as long.
#if defined(__x86_64__)
__attribute__((target("f16c"))) float widened_by_cpu(uint16_t bits) { return _cvtsh_ss(bits); }
__attribute__((target("f16c"))) uint16_t narrowed_by_cpu(float value) {
  return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
}
const bool kConvertedByCpu = __builtin_cpu_supports("f16c");
#else
float widened_by_cpu(uint16_t) { return 0; }
uint16_t narrowed_by_cpu(float) { return 0; }
constexpr bool kConvertedByCpu = false;
#endif

}  // namespace

float f16_to_float(uint16_t bits) {
  if (kConvertedByCpu) return widened_by_cpu(bits);
  _Float16 half;
  std::memcpy(&half, &bits, sizeof half);
  return static_cast<float>(half);
}

uint16_t float_to_f16(float value) {
  if (kConvertedByCpu) return narrowed_by_cpu(value);
  const auto half = static_cast<_Float16>(value);
  uint16_t bits;
  std::memcpy(&bits, &half, sizeof bits);
  return bits;
}

Array::Memory::Memory(std::shared_ptr<void> kept_alive, bool foreign)
    : owner(std::move(kept_alive)), id(next_id()), exposed(foreign) {}

Array::Array(Type type) : type_(storable(std::move(type))), count_(type_.shape.count()) {
  const auto wanted = static_cast<size_t>(std::max<int64_t>(bytes(), 1));
  if (wanted <= kSmall) {
    memory_ = std::allocate_shared<Memory>(WithArray<Memory>(wanted, &data_), nullptr, false);
  } else {
    memory_ = std::make_shared<Memory>(allocate(wanted), false);
    data_ = memory_->owner.get();
  }
}

Array::Array(Type type, void* data, std::shared_ptr<void> owner)
    : type_(storable(std::move(type))), count_(type_.shape.count()), data_(data) {
  if (data) memory_ = std::make_shared<Memory>(std::move(owner), true);
}

// Written, but not counted yet: the first reader counts it. (Counted before the note is taken away, so that
// nobody else can find neither.)
std::optional<Array::Stamp> Array::stamp() const {
  if (!memory_ || memory_->exposed.load(std::memory_order_acquire)) return std::nullopt;
  if (memory_->written.load(std::memory_order_acquire)) {
    memory_->version.fetch_add(1);
    memory_->written.store(false, std::memory_order_release);
  }
  return Stamp{memory_->id, memory_->version.load()};
}

void Array::assign(const Array& from) {
  if (from.type_ != type_)
    fail<TypeError>("an array {} cannot take over the elements of {}", type_.str(), from.type_.str());
  if (count_ > 0) std::memmove(ready(), from.ready(), static_cast<size_t>(bytes()));
  mark_written();
}

Array Array::of(DType dtype, const Shape& shape, std::span<const double> values) {
  Array array(dtype, shape);
  if (static_cast<int64_t>(values.size()) != array.count())
    fail<TypeError>("{} values are given for an array of shape {}", values.size(), shape.str());
  if (dtype == f32)
    std::transform(values.begin(), values.end(), array.elements<float>(),
                   [](double value) { return static_cast<float>(value); });
  else
    for (int64_t i = 0; i < array.count(); ++i) array.set(i, values[i]);
  return array;
}

Array Array::full(DType dtype, const Shape& shape, double value) {
  Array array(dtype, shape);
  for (int64_t i = 0; i < array.count(); ++i) array.set(i, value);
  return array;
}

double Array::at(int64_t i) const {
  switch (type_.dtype.kind) {
    case Kind::boolean:
      return as<uint8_t>()[i] != 0;
    case Kind::brain_floating:
      return bf16_to_float(as<uint16_t>()[i]);
    case Kind::floating:
      if (type_.dtype.bits == 64) return as<double>()[i];
      if (type_.dtype.bits == 16) return f16_to_float(as<uint16_t>()[i]);
      return as<float>()[i];
    case Kind::unsigned_int:
      return static_cast<double>(static_cast<uint64_t>(int_at(i)));
    case Kind::signed_int:
      return static_cast<double>(int_at(i));
    default:
      return narrow_to_float(type_.dtype, as<uint8_t>()[i]);
  }
}

void Array::set(int64_t i, double value) {
  const DType dtype = type_.dtype;
  switch (dtype.kind) {
    case Kind::boolean:
      elements<uint8_t>()[i] = value != 0;
      return;
    case Kind::brain_floating:
      elements<uint16_t>()[i] = float_to_bf16(static_cast<float>(value));
      return;
    case Kind::floating:
      if (dtype.bits == 64)
        elements<double>()[i] = value;
      else if (dtype.bits == 16)
        elements<uint16_t>()[i] = float_to_f16(static_cast<float>(value));
      else
        elements<float>()[i] = static_cast<float>(value);
      return;
    case Kind::unsigned_int:
    case Kind::signed_int:
      set_int(i, saturated(dtype, value));
      return;
    default:
      elements<uint8_t>()[i] = float_to_narrow(dtype, static_cast<float>(value));
      return;
  }
}

int64_t Array::int_at(int64_t i) const {
  const DType dtype = type_.dtype;
  if (is_real(dtype)) return static_cast<int64_t>(at(i));
  if (dtype.is_bool()) return as<uint8_t>()[i] != 0;
  const bool with_sign = dtype.kind == Kind::signed_int;
  switch (dtype.bits) {
    case 64:
      return as<int64_t>()[i];
    case 32:
      return with_sign ? int64_t{as<int32_t>()[i]} : int64_t{as<uint32_t>()[i]};
    case 16:
      return with_sign ? int64_t{as<int16_t>()[i]} : int64_t{as<uint16_t>()[i]};
    default:
      return with_sign ? int64_t{as<int8_t>()[i]} : int64_t{as<uint8_t>()[i]};
  }
}

void Array::set_int(int64_t i, int64_t value) {
  const DType dtype = type_.dtype;
  if (!dtype.is_int()) return set(i, static_cast<double>(value));
  if (dtype.bits == 64)
    elements<int64_t>()[i] = value;
  else if (dtype.bits == 32)
    elements<uint32_t>()[i] = static_cast<uint32_t>(value);
  else if (dtype.bits == 16)
    elements<uint16_t>()[i] = static_cast<uint16_t>(value);
  else
    elements<uint8_t>()[i] = static_cast<uint8_t>(wrapped(dtype, value));
}

std::vector<double> Array::to_doubles() const {
  if (type_.dtype == f32) return {as<float>().begin(), as<float>().end()};
  std::vector<double> out(count_);
  for (int64_t i = 0; i < count_; ++i) out[i] = at(i);
  return out;
}

Array Array::clone() const {
  Array copy(type_);
  if (count_ > 0) std::memcpy(copy.data_, ready(), static_cast<size_t>(bytes()));
  return copy;
}

Array Array::reshaped(const Shape& shape) const {
  if (shape.count() != count_)
    fail<TypeError>("an array {} cannot be reshaped to {}", type_.str(), shape.str());
  Array view = *this;
  view.type_.shape = shape;
  return view;
}

Array Array::converted(DType dtype) const {
  if (dtype == type_.dtype) return *this;
  Array out(dtype, type_.shape);
  // Weights of whole models.
  if (type_.dtype == f32 && dtype == bf16) {
    std::ranges::transform(as<float>(), out.as<uint16_t>().begin(), float_to_bf16);
    return out;
  }
  if (type_.dtype == bf16 && dtype == f32) {
    std::ranges::transform(as<uint16_t>(), out.as<float>().begin(), bf16_to_float);
    return out;
  }
  const bool whole = !is_real(type_.dtype) && !is_real(dtype);
  for (int64_t i = 0; i < count_; ++i) whole ? out.set_int(i, int_at(i)) : out.set(i, at(i));
  return out;
}

bool Array::identical(const Array& other) const {
  return type_ == other.type_ && (count_ == 0 || std::memcmp(data(), other.data(), bytes()) == 0);
}

}  // namespace millrace
