#include "data/codecs/arrays/number_array.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"

namespace millrace::data {
namespace {

DType stored_as(NumberType type) {
  if (type.kind == 'f') return {Kind::floating, static_cast<uint8_t>(8 * type.size)};
  if (type.kind == 'b') return boolean;
  if (type.size == 1) return type.kind == 'i' ? i8 : u8;
  return type.size == 2 || (type.size == 4 && type.kind == 'i') ? i32 : i64;
}

template <typename From, typename To>
void widen(const uint8_t* from, To* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + i * static_cast<int64_t>(sizeof value), sizeof value);
    to[i] = static_cast<To>(value);
  }
}

void convert(NumberType type, const uint8_t* from, Array& array) {
  const int64_t count = array.count();
  if (type.kind == 'b') {
    auto* to = static_cast<uint8_t*>(array.data());
    for (int64_t i = 0; i < count; ++i) to[i] = from[i] != 0;
  } else if (type.size == 2 && type.kind == 'i') {
    widen<int16_t>(from, array.as<int32_t>().data(), count);
  } else if (type.size == 2 && type.kind == 'u') {
    widen<uint16_t>(from, array.as<int32_t>().data(), count);
  } else if (type.size == 4 && type.kind == 'u') {
    widen<uint32_t>(from, array.as<int64_t>().data(), count);
  } else {
    if (count > 0) std::memcpy(array.data(), from, static_cast<size_t>(array.bytes()));
    if (type.size == 8 && type.kind == 'u')
      for (const int64_t value : array.as<int64_t>())
        if (value < 0) fail<InputError>("holds a number over 2^63 - 1, which cannot be kept here");
  }
}

/// Row-major out of column-major order.
Array transposed(const Array& from, const std::vector<int64_t>& shape) {
  Array out(from.type());
  const size_t rank = shape.size(), size = static_cast<size_t>(from.dtype().bytes());
  std::vector<int64_t> at(rank, 0), strides(rank, 1);
  for (size_t d = 1; d < rank; ++d) strides[d] = strides[d - 1] * shape[d - 1];
  const auto* source = static_cast<const uint8_t*>(from.data());
  auto* target = static_cast<uint8_t*>(out.data());
  int64_t place = 0;
  for (int64_t i = 0; i < from.count(); ++i, target += size) {
    std::memcpy(target, source + static_cast<size_t>(place) * size, size);
    for (size_t d = rank; d-- > 0;) {
      place += strides[d];
      if (++at[d] < shape[d]) break;
      place -= strides[d] * shape[d];
      at[d] = 0;
    }
  }
  return out;
}

}  // namespace

bool NumberType::known() const {
  switch (kind) {
    case 'f':
      return size == 2 || size == 4 || size == 8;
    case 'i':
    case 'u':
      return size == 1 || size == 2 || size == 4 || size == 8;
    default:
      return kind == 'b' && size == 1;
  }
}

Array number_array(NumberType type, const std::vector<int64_t>& shape, std::span<const uint8_t> bytes,
                   bool fortran) {
  constexpr int64_t most = int64_t{1} << 40;
  if (shape.size() > 32) fail<InputError>("is damaged: an array of {} dimensions", shape.size());
  int64_t count = 1, elements = 1;  // without zeros among the factors, so that nothing overflows
  for (const int64_t size : shape) {
    if (size < 0 || size > most || elements > most / std::max<int64_t>(size, 1))
      fail<InputError>("is damaged: an array of shape {}", fmt::join(shape, "x"));
    elements *= std::max<int64_t>(size, 1);
    count *= size;
  }
  if (static_cast<uint64_t>(count) > bytes.size() / static_cast<size_t>(type.size))
    fail<InputError>("is cut off: an array of shape {} needs {} bytes, {} are there; copy it again",
                     fmt::join(shape, "x"), count * type.size, bytes.size());
  Array array(stored_as(type), Shape(shape));
  convert(type, bytes.data(), array);
  return fortran && shape.size() > 1 && count > 0 ? transposed(array, shape) : array;
}

}  // namespace millrace::data
