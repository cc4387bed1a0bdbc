#include "data/feed/array_part.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"

namespace millrace::data {

ArrayPart::ArrayPart(std::vector<Field> fields, ArrayReader reader, ArrayPartOptions options)
    : fields_(std::move(fields)), reader_(std::move(reader)), options_(std::move(options)) {
  options_.pads.resize(fields_.size());
  size_t widest = 1;
  const auto up = [](size_t at, size_t to) { return (at + to - 1) / to * to; };
  for (size_t k = 0; k < fields_.size(); ++k) {
    const Field& field = fields_[k];
    const auto element = static_cast<size_t>(field.type.dtype.bytes());
    const size_t size = row_bytes(field.type, 0), pad = options_.pads[k].size();
    if (size == 0 || (pad > 0 && pad != element))
      fail<InternalError>(
          "the array '{}' is {}: rows of an array part have one size, its pads that of an element",
          field.name, field.type.str());
    widest = std::max(widest, element);
    offsets_.push_back(up(stored_, element));
    sizes_.push_back(size);
    stored_ = offsets_.back() + size;
  }
  stored_ = up(stored_, widest);
}

std::string ArrayPart::read(const Dataset& from, int64_t index, const SampleKey* /*random*/,
                            Scratch* /*scratch*/, std::byte* stored) const {
  try {
    read_many(from, index, 1, stored, stored_);
  } catch (const Error& error) {
    if (!options_.bad_samples) throw;
    return reason_or_rethrow(error, from, index);
  }
  return {};
}

bool ArrayPart::read_run(const Dataset& from, int64_t first, int64_t count, std::byte* stored,
                         size_t stride) const {
  try {
    read_many(from, first, count, stored, stride);
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
    if (!options_.bad_samples) throw;
    return false;  // each by itself says which of them is the bad one
  }
  return true;
}

void ArrayPart::read_many(const Dataset& from, int64_t first, int64_t count, std::byte* stored,
                          size_t stride) const {
  // Nothing is allocated for each sample of the usual part, that of one array.
  if (fields_.size() == 1 && (count == 1 || stride == sizes_[0])) {
    std::byte* const places[] = {stored};
    return reader_(from, first, count, places);
  }
  std::vector<std::byte*> places;
  if (count == 1) {
    for (const size_t offset : offsets_) places.push_back(stored + offset);
    return reader_(from, first, count, places);
  }
  const auto rows = static_cast<size_t>(count);
  std::vector<std::vector<std::byte>> dense;
  for (const size_t size : sizes_) places.push_back(dense.emplace_back(size * rows).data());
  reader_(from, first, count, places);
  for (size_t i = 0; i < rows; ++i)
    for (size_t k = 0; k < sizes_.size(); ++k)
      std::memcpy(stored + i * stride + offsets_[k], places[k] + i * sizes_[k], sizes_[k]);
}

void ArrayPart::put(const std::byte* stored, const Row& row, Scratch* /*scratch*/,
                    std::span<std::byte* const> arrays) const {
  for (size_t k = 0; k < sizes_.size(); ++k) std::memcpy(arrays[k], stored + offsets_[k], sizes_[k]);
  if (options_.change) options_.change(row, arrays);
}

void ArrayPart::pad(const Row& /*row*/, std::span<std::byte* const> arrays) const {
  for (size_t k = 0; k < sizes_.size(); ++k) fill_with(options_.pads[k], arrays[k], sizes_[k]);
}

void fill_with(const std::vector<std::byte>& element, std::byte* to, size_t size) {
  if (element.empty()) std::memset(to, 0, size);
  for (size_t at = 0; at < size && !element.empty(); at += element.size())
    std::memcpy(to + at, element.data(), element.size());
}

}  // namespace millrace::data
