#include "data/formats/numpy_type.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"

namespace millrace::data {
namespace {

bool valid(char kind, int size) {
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

/// Element i as an integer, little-endian and of its own sign.
int64_t integer_at(const NumpyType& type, const uint8_t* bytes) {
  uint64_t value = 0;
  for (int i = 0; i < type.size; ++i)
    value |= uint64_t{bytes[type.big_endian ? type.size - 1 - i : i]} << (8 * i);
  const int unused = 64 - 8 * type.size;
  return type.kind == 'i' ? static_cast<int64_t>(value << unused) >> unused : static_cast<int64_t>(value);
}

}  // namespace

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
      if (!valid(kind, size)) continue;
      NumpyType type{kind, size, false};
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
  if (dtype == bf16) fail<InputError>("{}: NumPy has no bf16; convert the array to float32", where);
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
  const auto size = static_cast<size_t>(type.size);
  auto* to = static_cast<uint8_t*>(array.data());
  if (type.kind == 'b') {
    for (size_t i = 0; i < bytes.size(); ++i) to[i] = bytes[i] != 0;
  } else if (array.dtype().bytes() == type.size && !type.big_endian && !(type.kind == 'u' && size == 8)) {
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  } else if (type.kind == 'f') {
    for (size_t at = 0; at < bytes.size(); ++at) to[at] = bytes[at / size * size + (size - 1 - at % size)];
  } else {
    for (int64_t i = 0; i < array.count(); ++i) {
      const int64_t value = integer_at(type, bytes.data() + static_cast<size_t>(i) * size);
      if (type.kind == 'u' && value < 0)
        fail<InputError>("{}: holds {}, which 64 bits with a sign do not", where,
                         static_cast<uint64_t>(value));
      array.set_int(i, value);
    }
  }
  return array;
}

}  // namespace millrace::data
