// The elements of a TensorProto.
#include <array>
#include <cstring>

#include "base/format.h"
#include "base/mapped_file.h"
#include "base/wire.h"
#include "onnx/model.h"

namespace millrace::onnx {
namespace {

constexpr std::array<const char*, 27> kNames = {
    "undefined", "float",      "uint8",      "int8",         "uint16",         "int16",      "int32",
    "int64",     "string",     "bool",       "float16",      "double",         "uint32",     "uint64",
    "complex64", "complex128", "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
    "uint4",     "int4",       "float4e2m1", "float8e8m0",   "uint2",          "int2"};

std::string told(const TensorProto& tensor) {
  return tensor.name.empty() ? "a tensor" : fmt::format("the tensor '{}'", tensor.name);
}

[[noreturn]] void wrong_count(const TensorProto& tensor, const Array& array) {
  fail<InputError>("{} says that its shape is {}, but holds another number of elements", told(tensor),
                   array.shape().str());
}

/// Elements that lie as they are in parts.
void copy_parts(const TensorProto& tensor, const std::vector<std::string_view>& parts, Array& array) {
  size_t at = 0;
  const auto size = static_cast<size_t>(array.bytes());
  for (const std::string_view part : parts) {
    if (part.size() > size - at) wrong_count(tensor, array);
    if (!part.empty()) std::memcpy(static_cast<char*>(array.data()) + at, part.data(), part.size());
    at += part.size();
  }
  if (at != size) wrong_count(tensor, array);
}

/// Varints in parts; 16-bit floats are their bits.
void copy_integers(const TensorProto& tensor, const std::vector<std::string_view>& parts, Array& array) {
  int64_t at = 0;
  for (std::string_view part : parts)
    while (!part.empty()) {
      uint64_t value = 0;
      if (!WireReader::varint(part, value) || at == array.count()) wrong_count(tensor, array);
      if (array.dtype().is_float())
        array.as<uint16_t>()[static_cast<size_t>(at++)] = static_cast<uint16_t>(value);
      else
        array.set_int(at++, static_cast<int64_t>(value));
    }
  if (at != array.count()) wrong_count(tensor, array);
}

int64_t number_of(const TensorProto& tensor, const char* key, int64_t fallback) {
  const auto found = tensor.external.find(key);
  if (found == tensor.external.end()) return fallback;
  try {
    return std::stoll(found->second);
  } catch (const std::exception&) {
    fail<InputError>("{}: the {} of its external data is '{}'", told(tensor), key, found->second);
  }
}

void read_external(const TensorProto& tensor, const std::filesystem::path& folder, Array& array) {
  const auto location = tensor.external.find("location");
  if (location == tensor.external.end())
    fail<InputError>("{} lies outside of the model, but where is not said", told(tensor));
  const std::filesystem::path relative(location->second);
  if (relative.is_absolute() || relative.lexically_normal().string().starts_with(".."))
    fail<InputError>("{} lies in '{}', outside of the model's folder; move the file there", told(tensor),
                     location->second);
  const MappedFile file(folder / relative);
  const auto size = static_cast<int64_t>(file.bytes().size());
  const int64_t offset = number_of(tensor, "offset", 0), length = number_of(tensor, "length", array.bytes());
  if (offset < 0 || length != array.bytes() || offset > size || length > size - offset)
    fail<InputError>("{}: '{}' has no {} bytes from {} on for it (is the file whole?)", told(tensor),
                     location->second, array.bytes(), offset);
  if (length > 0) std::memcpy(array.data(), file.bytes().data() + offset, static_cast<size_t>(length));
}

/// The bytes that a tensor brings with it, at most: so a small file asks for no large memory.
size_t bytes_at_hand(const TensorProto& tensor) {
  size_t bytes = tensor.raw.size();
  for (const auto* parts : {&tensor.floats, &tensor.doubles, &tensor.int32s, &tensor.int64s, &tensor.uint64s})
    for (const std::string_view part : *parts) bytes += 8 * part.size();
  return bytes;
}

}  // namespace

std::optional<DType> dtype_of(int64_t data_type) {
  switch (data_type) {
    case 1:
      return f32;
    case 2:
      return u8;
    case 3:
      return i8;
    case 6:
      return i32;
    case 7:
      return i64;
    case 9:
      return boolean;
    case 10:
      return f16;
    case 11:
      return f64;
    case 16:
      return bf16;
    default:
      return std::nullopt;
  }
}

std::string data_type_name(int64_t data_type) {
  return data_type >= 0 && data_type < static_cast<int64_t>(kNames.size())
             ? kNames[static_cast<size_t>(data_type)]
             : fmt::format("type {}", data_type);
}

Array array_of(const TensorProto& tensor, const std::filesystem::path& folder) {
  const std::optional<DType> dtype = dtype_of(tensor.data_type);
  if (!dtype)
    fail<InputError>("{} is of {}, which Millrace does not compute with", told(tensor),
                     data_type_name(tensor.data_type));
  const Type type{*dtype, Shape(tensor.dims)};
  if (const std::string fault = type.fault(); !fault.empty()) fail<InputError>("{}: {}", told(tensor), fault);
  if (tensor.external.empty() && static_cast<size_t>(type.bytes()) > bytes_at_hand(tensor))
    fail<InputError>("{} says that its shape is {}, but holds fewer elements", told(tensor),
                     type.shape.str());
  Array array(type);
  if (!tensor.external.empty())
    read_external(tensor, folder, array);
  else if (!tensor.raw.empty())
    copy_parts(tensor, {tensor.raw}, array);
  else if (*dtype == f32)
    copy_parts(tensor, tensor.floats, array);
  else if (*dtype == f64)
    copy_parts(tensor, tensor.doubles, array);
  else
    copy_integers(tensor, *dtype == i64 ? tensor.int64s : tensor.int32s, array);
  return array;
}

}  // namespace millrace::onnx
