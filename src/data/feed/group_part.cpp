#include "data/feed/group_part.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"

namespace millrace::data {

GroupPart::GroupPart(const std::vector<Field>& rows, int64_t longest, ArrayReader reader,
                     ArrayPartOptions options)
    : longest_(longest), reader_(std::move(reader)), options_(std::move(options)) {
  options_.pads.resize(rows.size());
  begins_.push_back(sizeof(int64_t));
  for (const Field& field : rows) {
    Shape shape = {field.type.shape[0], Dim::named("length")};
    for (int d = 1; d < field.type.shape.rank(); ++d) shape.push_back(field.type.shape[d]);
    fields_.push_back({field.name, {field.type.dtype, shape}});
    sizes_.push_back(row_bytes(field.type, 0));
    constexpr size_t word = 8;
    begins_.push_back(begins_.back() +
                      (sizes_.back() * static_cast<size_t>(longest) + word - 1) / word * word);
  }
}

void GroupPart::read_rows(const Dataset& from, int64_t index, std::byte* stored) const {
  const SampleRows sample = from.rows(index);
  const auto count = static_cast<int64_t>(sample.rows.size());
  if (count > longest_) fail<InternalError>("{}: {} rows, at most {}", from.name(index), count, longest_);
  std::memset(stored, 0, begins_.back());  // what is kept is compared by its digest, to its end
  std::memcpy(stored, &count, sizeof count);
  std::vector<std::byte*> to(fields_.size());
  for (int64_t at = 0, end = 0; at < count; at = end) {
    // Rows that follow each other in the table are read at once.
    const int64_t first = sample.rows[static_cast<size_t>(at)];
    for (end = at + 1; end < count && sample.rows[static_cast<size_t>(end)] == first + end - at;) ++end;
    for (size_t k = 0; k < to.size(); ++k) to[k] = stored + begins_[k] + sizes_[k] * static_cast<size_t>(at);
    reader_(*sample.table, first, end - at, to);
  }
}

std::string GroupPart::read(const Dataset& from, int64_t index, const SampleKey* /*random*/,
                            Scratch* /*scratch*/, std::byte* stored) const {
  try {
    read_rows(from, index, stored);
  } catch (const Error& error) {
    if (!options_.bad_samples) throw;
    return reason_or_rethrow(error, from, index);
  }
  return {};
}

void GroupPart::put(const std::byte* stored, const Row& row, Scratch* /*scratch*/,
                    std::span<std::byte* const> arrays) const {
  int64_t count = 0;
  std::memcpy(&count, stored, sizeof count);
  count = std::min(count, row.length);
  for (size_t k = 0; k < sizes_.size(); ++k) {
    const size_t size = sizes_[k] * static_cast<size_t>(count);
    std::memcpy(arrays[k], stored + begins_[k], size);
    fill_with(options_.pads[k], arrays[k] + size, sizes_[k] * static_cast<size_t>(row.length - count));
  }
  if (!options_.change) return;
  std::vector<std::byte*> places(arrays.begin(), arrays.end());
  Row own = row;
  for (int64_t i = 0; i < count; ++i) {
    own.key.position = row.key.position * longest_ + i;
    options_.change(own, places);
    for (size_t k = 0; k < sizes_.size(); ++k) places[k] += sizes_[k];
  }
}

void GroupPart::pad(const Row& row, std::span<std::byte* const> arrays) const {
  for (size_t k = 0; k < sizes_.size(); ++k)
    fill_with(options_.pads[k], arrays[k], sizes_[k] * static_cast<size_t>(row.length));
}

}  // namespace millrace::data
