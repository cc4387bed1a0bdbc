#include "data/codecs/arrays/numpy_type.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <millrace/narrow_types.h>

#include "base/format.h"

namespace millrace::data {
namespace {

/// Element by element, into wider ones.
template <typename From, typename To>
void widen(const NumpyType& type, const uint8_t* from, To* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i, from += sizeof(From)) {
    uint8_t bytes[sizeof(From)];
    std::memcpy(bytes, from, sizeof bytes);
    if (type.big_endian) std::reverse(bytes, bytes + sizeof bytes);
    From value;
    std::memcpy(&value, bytes, sizeof value);
    to[i] = static_cast<To>(value);
  }
}

/// Fills the array, of type.dtype(), with its elements; a number that does not fit, where there is one.
std::optional<uint64_t> convert(const NumpyType& type, const uint8_t* from, Array& array) {
  const int64_t count = array.count();
  auto* const to = static_cast<uint8_t*>(array.data());
  if (type.kind == 'b') {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i] != 0;
  } else if (type.size == 2 && type.kind == 'i') {
    widen<int16_t>(type, from, array.as<int32_t>().data(), count);
  } else if (type.size == 2 && type.kind == 'u') {
    widen<uint16_t>(type, from, array.as<int32_t>().data(), count);
  } else if (type.size == 4 && type.kind == 'u') {
    widen<uint32_t>(type, from, array.as<int64_t>().data(), count);
  } else {
    if (count > 0) std::memcpy(to, from, static_cast<size_t>(array.bytes()));
    for (int64_t at = 0; type.big_endian && at < array.bytes(); at += type.size)
      std::reverse(to + at, to + at + type.size);
    if (type.size == 8 && type.kind == 'u')
      for (const int64_t value : array.as<int64_t>())
        if (value < 0) return static_cast<uint64_t>(value);
  }
  return std::nullopt;
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

bool NumpyType::known() const {
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

DType NumpyType::dtype() const {
  if (kind == 'f') return size == 2 ? f16 : size == 4 ? f32 : f64;
  if (kind == 'b') return boolean;
  if (size == 1) return kind == 'i' ? i8 : u8;
  return size == 2 || (size == 4 && kind == 'i') ? i32 : i64;
}

std::string NumpyType::descr() const {
  return fmt::format("{}{}{}", size == 1 ? '|' : big_endian ? '>' : '<', kind, size);
}

std::string NumpyType::name() const {
  if (kind == 'b') return "bool";
  return fmt::format("{}{}", kind == 'f' ? "float" : kind == 'i' ? "int" : "uint", 8 * size);
}

NumpyType parse_numpy_type(std::string_view text, std::string_view where) {
  for (const char kind : {'f', 'i', 'u', 'b'})
    for (const int size : {1, 2, 4, 8}) {
      NumpyType type{kind, size, false};
      if (!type.known()) continue;
      if (text == type.name() || text == type.descr()) return type;
      // "=", "|" and no mark at all are the machine's own order: little-endian wherever this runs.
      if (text.size() == 3 && text.substr(1) == type.descr().substr(1) && text[0] != '>') return type;
      type.big_endian = size > 1;
      if (text == type.descr() || (size == 1 && text == fmt::format(">{}1", kind))) return type;
    }
  fail<InputError>("{}: arrays of NumPy's type '{}' are not read here; store them as float32 or int64", where,
                   text);
}

NumpyType numpy_type_of(DType dtype, std::string_view where) {
  if (dtype.is_bool()) return {'b', 1, false};
  if (dtype == bf16 || is_narrow_float(dtype) || dtype.bits < 8)
    fail<InputError>("{}: NumPy has no {}; convert the array to float32", where, dtype.name());
  return {dtype.is_float()                 ? 'f'
          : dtype.kind == Kind::signed_int ? 'i'
                                           : 'u',
          static_cast<int>(dtype.bytes()), false};
}

uint64_t numpy_bytes(NumpyType type, const std::vector<int64_t>& shape, std::string_view where) {
  const Shape wanted(shape);
  // Without the zeros, which make every product look small.
  std::vector<int64_t> sizes = shape;
  std::erase(sizes, 0);
  if (std::string fault = Type{f64, Shape(sizes)}.fault(); !fault.empty())
    fail<InputError>("{}: an array of shape {}: {}", where, wanted.str(), fault);
  return static_cast<uint64_t>(wanted.count()) * static_cast<uint64_t>(type.size);
}

Array array_from_numpy(NumpyType type, const std::vector<int64_t>& shape, std::span<const uint8_t> bytes,
                       std::string_view where) {
  if (numpy_bytes(type, shape, where) != bytes.size())
    fail<InputError>("{}: an array of shape {} and type {} does not have {} bytes: damaged", where,
                     Shape(shape).str(), type.name(), bytes.size());
  Array array(type.dtype(), Shape(shape));
  if (const auto wrong = convert(type, bytes.data(), array))
    fail<InputError>("{}: holds {}, which 64 bits with a sign do not", where, *wrong);
  return array;
}

Array number_array(NumpyType type, const std::vector<int64_t>& shape, std::span<const uint8_t> bytes,
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
  Array array(type.dtype(), Shape(shape));
  if (convert(type, bytes.data(), array))
    fail<InputError>("holds a number over 2^63 - 1, which cannot be kept here");
  return fortran && shape.size() > 1 && count > 0 ? transposed(array, shape) : array;
}

}  // namespace millrace::data
