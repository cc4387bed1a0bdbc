// The elements of a TensorProto.
#include <array>
#include <cstring>
#include <map>
#include <string_view>

#include <millrace/scalar.h>

#include "base/format.h"
#include "base/wire.h"
#include "onnx/external_files.h"
#include "onnx/model.h"

namespace millrace::onnx {
namespace {

constexpr std::array<const char*, kDataTypes> kNames = {
    "undefined", "float",      "uint8",      "int8",         "uint16",         "int16",      "int32",
    "int64",     "string",     "bool",       "float16",      "double",         "uint32",     "uint64",
    "complex64", "complex128", "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
    "uint4",     "int4",       "float4e2m1", "float8e8m0",   "uint2",          "int2"};

// In bytes. Smaller external data is copied.
constexpr int64_t kLarge = 4096;

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

/// Elements of less than a byte: several in each, the first in the lowest bits.
void unpack(const TensorProto& tensor, std::string_view bytes, Array& array) {
  const auto bits = static_cast<int64_t>(array.dtype().bits), in_byte = 8 / bits;
  if (static_cast<int64_t>(bytes.size()) != (array.count() + in_byte - 1) / in_byte)
    wrong_count(tensor, array);
  const auto mask = static_cast<unsigned>((1 << bits) - 1);
  for (int64_t i = 0; i < array.count(); ++i) {
    const unsigned code = static_cast<unsigned char>(bytes[static_cast<size_t>(i / in_byte)]) >>
                              static_cast<unsigned>(i % in_byte * bits) &
                          mask;
    if (is_narrow_float(array.dtype()))
      array.as<uint8_t>()[static_cast<size_t>(i)] = static_cast<uint8_t>(code);
    else
      array.set_int(i, code);
  }
}

/// The same where each byte came as a varint.
void unpack_integers(const TensorProto& tensor, const std::vector<std::string_view>& parts, Array& array) {
  std::string bytes;
  for (std::string_view part : parts)
    while (!part.empty()) {
      uint64_t value = 0;
      if (!WireReader::varint(part, value)) wrong_count(tensor, array);
      bytes += static_cast<char>(value);
    }
  unpack(tensor, bytes, array);
}

/// Varints in parts; 8- and 16-bit floats are their bits.
void copy_integers(const TensorProto& tensor, const std::vector<std::string_view>& parts, Array& array) {
  int64_t at = 0;
  for (std::string_view part : parts)
    while (!part.empty()) {
      uint64_t value = 0;
      if (!WireReader::varint(part, value) || at == array.count()) wrong_count(tensor, array);
      if (is_narrow_float(array.dtype()))
        array.as<uint8_t>()[static_cast<size_t>(at++)] = static_cast<uint8_t>(value);
      else if (array.dtype().is_float())
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

/// A tensor's external data, of so many bytes, in a file that it opens.
std::string_view external_data(const TensorProto& tensor, const std::filesystem::path& folder, int64_t bytes,
                               ExternalFiles& files, std::shared_ptr<const MappedFile>& file) {
  const auto location = tensor.external.find("location");
  if (location == tensor.external.end())
    fail<InputError>("{} lies outside of the model, but where is not said", told(tensor));
  const std::filesystem::path relative(location->second);
  if (relative.is_absolute() || relative.lexically_normal().string().starts_with(".."))
    fail<InputError>("{} lies in '{}', outside of the model's folder; move the file there", told(tensor),
                     location->second);
  file = files.open(folder / relative);
  const auto size = static_cast<int64_t>(file->bytes().size());
  const int64_t offset = number_of(tensor, "offset", 0), length = number_of(tensor, "length", bytes);
  if (offset < 0 || length != bytes || offset > size || length > size - offset)
    fail<InputError>("{}: '{}' has no {} bytes from {} on for it (is the file whole?)", told(tensor),
                     location->second, bytes, offset);
  return {reinterpret_cast<const char*>(file->bytes().data()) + offset, static_cast<size_t>(bytes)};
}

/// Several elements lie in a byte.
bool in_one_byte(DType dtype) { return dtype.bits < 8 && !dtype.is_bool(); }

/// What raw or external data of such elements take.
int64_t stored_bytes(const Type& type) {
  return in_one_byte(type.dtype) ? (type.shape.count() * type.dtype.bits + 7) / 8 : type.bytes();
}

Type type_of(const TensorProto& tensor) {
  const std::optional<DType> dtype = dtype_of(tensor.data_type);
  if (!dtype)
    fail<InputError>("{} is of {}, which Millrace does not compute with", told(tensor),
                     data_type_name(tensor.data_type));
  Type type{*dtype, Shape(tensor.dims)};
  if (const std::string fault = type.fault(); !fault.empty()) fail<InputError>("{}: {}", told(tensor), fault);
  return type;
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
  static const std::map<int64_t, DType> types = {
      {1, f32},   {2, u8},        {3, i8},          {4, u16},     {5, i16},         {6, i32},
      {7, i64},   {9, boolean},   {10, f16},        {11, f64},    {12, u32},        {13, u64},
      {16, bf16}, {17, f8e4m3fn}, {18, f8e4m3fnuz}, {19, f8e5m2}, {20, f8e5m2fnuz}, {21, u4},
      {22, i4},   {23, f4e2m1},   {24, f8e8m0},     {25, u2},     {26, i2}};
  const auto found = types.find(data_type);
  if (found == types.end()) return std::nullopt;
  return found->second;
}

std::string data_type_name(int64_t data_type) {
  return data_type >= 0 && data_type < static_cast<int64_t>(kNames.size())
             ? kNames[static_cast<size_t>(data_type)]
             : fmt::format("type {}", data_type);
}

void open_external(const Model& model, ExternalFiles& files) {
  for (const TensorProto& tensor : model.graph.initialisers) {
    if (tensor.external.empty() || tensor.is_text()) continue;
    std::shared_ptr<const MappedFile> file;
    (void)external_data(tensor, model.folder, stored_bytes(type_of(tensor)), files, file);
  }
}

Array array_of(const TensorProto& tensor, const std::filesystem::path& folder, ExternalFiles* files) {
  const Type type = type_of(tensor);
  // A byte at hand holds four elements at most.
  if (tensor.external.empty() && static_cast<size_t>(type.bytes()) > 4 * bytes_at_hand(tensor))
    fail<InputError>("{} says that its shape is {}, but holds fewer elements", told(tensor),
                     type.shape.str());
  const DType dtype = type.dtype;
  const bool several = in_one_byte(dtype);
  const bool external = !tensor.external.empty(), as_they_lie = external || !tensor.raw.empty();
  const int64_t size = stored_bytes(type);
  ExternalFiles closed_again;
  std::shared_ptr<const MappedFile> file;
  const std::string_view bytes =
      external ? external_data(tensor, folder, size, files ? *files : closed_again, file) : tensor.raw;
  if (external && files && !several && size >= kLarge &&
      reinterpret_cast<uintptr_t>(bytes.data()) % static_cast<uintptr_t>(dtype.bytes()) == 0)
    return {type, const_cast<char*>(bytes.data()), std::const_pointer_cast<MappedFile>(file)};
  Array array(type);
  if (several && as_they_lie)
    unpack(tensor, bytes, array);
  else if (several)
    unpack_integers(tensor, tensor.int32s, array);
  else if (as_they_lie)
    copy_parts(tensor, {bytes}, array);
  else if (dtype == f32)
    copy_parts(tensor, tensor.floats, array);
  else if (dtype == f64)
    copy_parts(tensor, tensor.doubles, array);
  else if (dtype == u64 || dtype == u32)
    copy_integers(tensor, tensor.uint64s, array);
  else
    copy_integers(tensor, dtype == i64 ? tensor.int64s : tensor.int32s, array);
  if (external) require_mapped_file(bytes.data());
  return array;
}

std::map<std::string, Array> large_initialisers(const Model& model, ExternalFiles& files) {
  std::map<std::string, Array> arrays;
  for (const TensorProto& tensor : model.graph.initialisers) {
    if (tensor.is_text()) continue;
    Array array = array_of(tensor, model.folder, &files);
    if (array.bytes() >= kLarge) arrays.emplace(tensor.name, std::move(array));
  }
  return arrays;
}

Array array_of(const SparseTensorProto& tensor, const std::filesystem::path& folder) {
  constexpr int64_t most = int64_t{1} << 28;  // a few bytes of a file must not ask for much memory
  const Array values = array_of(tensor.values, folder), indices = array_of(tensor.indices, folder);
  const std::string name = told(tensor.values);
  const Type type{values.dtype(), Shape(tensor.dims)};
  if (const std::string fault = type.fault(); !fault.empty()) fail<InputError>("{}: {}", name, fault);
  if (type.shape.count() > most)
    fail<InputError>("{} is sparse and has more than {} elements; make it dense", name, most);
  const auto rank = static_cast<int64_t>(tensor.dims.size());
  const bool by_axis = indices.shape().rank() == 2;
  if (indices.dtype() != i64 || indices.count() != values.count() * (by_axis ? rank : 1))
    fail<InputError>("{} is sparse and has other indices than values", name);
  Array array(type);
  for (int64_t i = 0; i < values.count(); ++i) {
    int64_t at = by_axis ? 0 : indices.int_at(i);
    for (int64_t d = 0; by_axis && d < rank; ++d) {
      const int64_t size = tensor.dims[static_cast<size_t>(d)], place = indices.int_at(i * rank + d);
      if (place < 0 || place >= size) fail<InputError>("{} is sparse and has indices outside of it", name);
      at = at * size + place;
    }
    if (at < 0 || at >= array.count()) fail<InputError>("{} is sparse and has indices outside of it", name);
    const auto bytes = static_cast<size_t>(type.dtype.bytes());
    std::memcpy(static_cast<char*>(array.data()) + static_cast<size_t>(at) * bytes,
                static_cast<const char*>(values.data()) + static_cast<size_t>(i) * bytes, bytes);
  }
  return array;
}

Texts texts_of(const TensorProto& tensor) {
  const Type type{u8, Shape(tensor.dims)};
  if (const std::string fault = type.fault(); !fault.empty())
    fail<InputError>("the tensor of texts '{}': {}", tensor.name, fault);
  if (type.shape.count() != static_cast<int64_t>(tensor.texts.size()))
    fail<InputError>("the tensor '{}' says that its shape is {}, but holds {} texts", tensor.name,
                     type.shape.str(), tensor.texts.size());
  return {tensor.dims, tensor.texts};
}

}  // namespace millrace::onnx
