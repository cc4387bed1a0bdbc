#include "data/codecs/arrays/tenbin.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/format.h"
#include "base/number_at.h"
#include "data/codecs/arrays/numpy_type.h"

namespace millrace::data {
namespace {

std::string letters_at(std::span<const uint8_t> bytes, size_t at) {
  const auto* from = reinterpret_cast<const char*>(&bytes[at]);
  return {from, strnlen(from, 8)};
}

/// The chunk at the beginning of `bytes`, which then begin behind it.
std::span<const uint8_t> take_chunk(std::span<const uint8_t>& bytes) {
  if (bytes.size() < 16 || letters_at(bytes, 0) != "~TenBin~")
    fail<InputError>("is no .ten file, or damaged");
  const int64_t length = number_at<int64_t>(&bytes[8]);
  if (length < 0 || static_cast<uint64_t>(length) > bytes.size() - 16)
    fail<InputError>("is cut off: a chunk of {} bytes, {} are there; copy it again", length,
                     bytes.size() - 16);
  const auto chunk = bytes.subspan(16, static_cast<size_t>(length));
  const size_t padded = (chunk.size() + 63) / 64 * 64;
  bytes = bytes.subspan(std::min(bytes.size(), 16 + padded));
  return chunk;
}

}  // namespace

std::vector<std::pair<std::string, Array>> parse_tenbin(std::span<const uint8_t> bytes) {
  std::vector<std::pair<std::string, Array>> arrays;
  while (!bytes.empty()) {
    const auto header = take_chunk(bytes);
    if (header.size() < 24) fail<InputError>("is damaged: a header of {} bytes", header.size());
    const std::string dtype = letters_at(header, 0);
    NumpyType type{0, 0};
    if (dtype.size() == 2) type = {dtype[0], dtype[1] - '0'};
    if (!type.known()) fail<InputError>("holds elements of the unknown type '{}'", dtype);
    const int64_t rank = number_at<int64_t>(&header[16]);
    if (rank < 0 || static_cast<uint64_t>(rank) > header.size() / 8 - 3)
      fail<InputError>("is damaged: an array of {} dimensions", rank);
    std::vector<int64_t> shape;
    for (int64_t i = 0; i < rank; ++i) shape.push_back(number_at<int64_t>(&header[24] + 8 * i));
    arrays.emplace_back(letters_at(header, 8), number_array(type, shape, take_chunk(bytes)));
  }
  return arrays;
}

std::vector<std::string> tenbin_names(const std::vector<std::pair<std::string, Array>>& arrays) {
  std::vector<std::string> names, numbers;
  for (const auto& [name, array] : arrays) {
    names.push_back(name);
    numbers.push_back(std::to_string(numbers.size()));
  }
  const std::set<std::string> different(names.begin(), names.end());
  return different.size() == names.size() && !different.contains("") ? names : numbers;
}

}  // namespace millrace::data
