#include "track/safetensors.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include <millrace/narrow_types.h>
#include <millrace/scalar.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/format.h"

namespace millrace::track {
namespace {

using nlohmann::json;

constexpr const char* checksum_key = "millrace.crc32c";
constexpr uint64_t max_header = 100'000'000;  // the limit of the format's own library

const std::array<std::pair<DType, const char*>, 16> dtype_names{{{f32, "F32"},
                                                                 {f64, "F64"},
                                                                 {f16, "F16"},
                                                                 {bf16, "BF16"},
                                                                 {i8, "I8"},
                                                                 {u8, "U8"},
                                                                 {i16, "I16"},
                                                                 {u16, "U16"},
                                                                 {i32, "I32"},
                                                                 {u32, "U32"},
                                                                 {i64, "I64"},
                                                                 {u64, "U64"},
                                                                 {f8e4m3fn, "F8_E4M3"},
                                                                 {f8e5m2, "F8_E5M2"},
                                                                 {f8e8m0, "F8_E8M0"},
                                                                 {boolean, "BOOL"}}};

const char* dtype_name(DType dtype) {
  for (const auto& [candidate, name] : dtype_names)
    if (candidate == dtype) return name;
  fail<InputError>("safetensors has no dtype {}; convert the tensor", dtype.name());
}

/// The checksum covers the header as it reads without the checksum, then the data.
uint32_t header_checksum(const json& header) {
  const std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace);
  return crc32c(text.data(), text.size());
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const NamedArrays& tensors,
                       const Metadata& metadata) {
  // Wide elements first, so that every tensor is aligned to its element size, as the format's own library
  // does.
  std::vector<const std::pair<std::string, Array>*> order;
  for (const auto& item : tensors) order.push_back(&item);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return a->second.dtype().bytes() > b->second.dtype().bytes();
  });
  json header = json::object();
  uint64_t offset = 0;
  for (const auto* item : order) {
    const auto& [name, array] = *item;
    MILLRACE_CHECK(name != "__metadata__" && !header.contains(name), "tensor name '{}' is taken", name);
    if (array.empty() && array.shape().count() > 0)
      fail<InputError>("{}: the array of tensor '{}' has no elements yet", path.string(), name);
    const uint64_t end = offset + static_cast<uint64_t>(array.bytes());
    header[name] = {{"dtype", dtype_name(array.dtype())},
                    {"shape", array.shape().sizes()},
                    {"data_offsets", {offset, end}}};
    offset = end;
  }
  header["__metadata__"] = metadata;
  header["__metadata__"].erase(checksum_key);  // of another file, whose metadata these were
  uint32_t crc = header_checksum(header);
  for (const auto* item : order) crc = crc32c(item->second.data(), item->second.bytes(), crc);
  header["__metadata__"][checksum_key] = fmt::format("{:08x}", crc);

  std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t length = text.size();
  AtomicFile file(path);
  file.write(&length, sizeof length);
  file.write(text);
  for (const auto* item : order) file.write(item->second.data(), item->second.bytes());
  file.commit();
}

SafeTensors::SafeTensors(const std::filesystem::path& path)
    : file_(path), bytes_(file_.bytes()), name_(path.string()) {
  parse();
}

SafeTensors::SafeTensors(std::span<const uint8_t> bytes, std::string name)
    : bytes_(bytes), name_(std::move(name)) {
  parse();
}

void SafeTensors::parse() {
  uint64_t length = 0;
  if (bytes_.size() < sizeof length)
    fail<IoError>("{}: {} bytes are too few for a safetensors file", name_, bytes_.size());
  std::memcpy(&length, bytes_.data(), sizeof length);
  if (length > max_header) fail<InputError>("{}: is no safetensors file", name_);
  if (length > bytes_.size() - sizeof length)
    fail<IoError>("{}: the file is cut off within its header", name_);
  const auto* begin = bytes_.data() + sizeof length;
  data_ = bytes_.subspan(sizeof length + length);

  json header = json::parse(begin, begin + length, nullptr, false);
  if (!header.is_object())
    fail<InputError>("{}: not a safetensors file (the header is no JSON object)", name_);
  const auto bad = [&](const std::string& what) {
    fail<InputError>("{}: bad safetensors header: {}", name_, what);
  };

  for (const auto& [name, item] : header.items()) {
    if (name == "__metadata__") {
      if (!item.is_object()) bad("__metadata__ is no object");
      for (const auto& [key, value] : item.items()) {
        if (!value.is_string()) bad(fmt::format("metadata '{}' is no string", key));
        metadata_[key] = value.get<std::string>();
      }
      continue;
    }
    const auto field = [&](const char* key) -> const json& {
      static const json nothing;
      return item.is_object() && item.contains(key) ? item.at(key) : nothing;
    };
    const json &dtype = field("dtype"), &shape = field("shape"), &offsets = field("data_offsets");
    const auto natural = [](const json& value) { return value.is_number_unsigned(); };
    if (!dtype.is_string() || !shape.is_array() || !std::all_of(shape.begin(), shape.end(), natural) ||
        !offsets.is_array() || offsets.size() != 2 || !natural(offsets[0]) || !natural(offsets[1]))
      bad(fmt::format("tensor '{}' lacks a dtype, a shape or data_offsets", name));
    const auto known = std::find_if(dtype_names.begin(), dtype_names.end(), [&](const auto& pair) {
      return dtype.get_ref<const std::string&>() == pair.second;
    });
    if (known == dtype_names.end())
      bad(fmt::format("tensor '{}' has dtype {}, which Millrace does not store", name,
                      dtype.get<std::string>()));

    Entry entry{{known->first, {}}, offsets[0].get<uint64_t>(), offsets[1].get<uint64_t>()};
    uint64_t size = static_cast<uint64_t>(known->first.bytes());
    for (const json& dim : shape) {
      const uint64_t value = dim.get<uint64_t>();
      if (value > (uint64_t{1} << 62) || __builtin_mul_overflow(size, value, &size))
        bad(fmt::format("the shape of tensor '{}' is too large", name));
      entry.type.shape.push_back(Dim(static_cast<int64_t>(value)));
    }
    if (!entry.type.fault().empty()) bad(fmt::format("the shape of tensor '{}' is too large", name));
    if (entry.begin > entry.end || entry.end - entry.begin != size)
      bad(fmt::format("tensor '{}' takes {} bytes, its data_offsets say otherwise", name, size));
    if (entry.end > data_.size())
      fail<IoError>("{}: the file is cut off: tensor '{}' ends at byte {}, the data at {}", name_, name,
                    entry.end, data_.size());
    tensors_.emplace(name, std::move(entry));
  }

  // Tensors must follow each other without holes and fill the file.
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto& [name, entry] : tensors_) ranges.emplace_back(entry.begin, entry.end);
  std::sort(ranges.begin(), ranges.end());
  uint64_t end = 0;
  for (const auto& [first, last] : ranges) {
    if (first != end) bad("tensors overlap or leave a hole");
    end = last;
  }
  if (end != data_.size()) bad(fmt::format("the tensors end at byte {}, the data at {}", end, data_.size()));

  const auto checksum = metadata_.find(checksum_key);
  if (checksum == metadata_.end()) return;
  has_checksum_ = true;
  header["__metadata__"].erase(checksum_key);
  const uint32_t crc = crc32c(data_.data(), data_.size(), header_checksum(header));
  if (fmt::format("{:08x}", crc) != checksum->second)
    fail<InputError>("{}: the checksum does not fit: the file is damaged", name_);
  metadata_.erase(checksum);
}

std::vector<std::string> SafeTensors::names() const {
  std::vector<std::string> result;
  for (const auto& [name, entry] : tensors_) result.push_back(name);
  std::stable_sort(result.begin(), result.end(), [&](const std::string& a, const std::string& b) {
    return tensors_.at(a).begin < tensors_.at(b).begin;
  });
  return result;
}

const SafeTensors::Entry& SafeTensors::require(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) fail<InputError>("{}: there is no tensor '{}'", name_, name);
  return found->second;
}

NamedArrays read_safetensors(const std::filesystem::path& path) {
  const SafeTensors file(path);
  NamedArrays tensors;
  for (const std::string& name : file.names()) tensors.emplace_back(name, file.tensor(name));
  return tensors;
}

Array SafeTensors::tensor(const std::string& name) const {
  const Entry& entry = require(name);
  Array result(entry.type);
  if (result.bytes()) std::memcpy(result.data(), data_.data() + entry.begin, result.bytes());
  return result;
}

}  // namespace millrace::track
