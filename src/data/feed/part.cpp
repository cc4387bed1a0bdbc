#include "data/feed/part.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "data/io/remote_object.h"

namespace millrace::data {

size_t row_bytes(const Type& type, int64_t length) {
  int64_t size = type.dtype.bytes();
  for (size_t i = 1; i < type.shape.size(); ++i) {
    const Dim& dim = type.shape[i];
    size *= dim.factor();
    for (const std::string& name : dim.names()) {
      if (name != "length") fail<InternalError>("an array of a batch is {}: who knows {}?", type.str(), name);
      size *= length;
    }
  }
  return static_cast<size_t>(size);
}

std::string reason_or_rethrow(const Error& error, const Dataset& from, int64_t index) {
  if (dynamic_cast<const RemoteError*>(&error) || dynamic_cast<const InternalError*>(&error)) throw;
  const std::string message = error.what(), name = from.name(index) + ": ";
  return message.starts_with(name) ? message.substr(name.size()) : message;
}

void Part::pad(const Row& row, std::span<std::byte* const> arrays) const {
  const auto all = fields();
  for (size_t k = 0; k < all.size(); ++k) std::memset(arrays[k], 0, row_bytes(all[k].type, row.length));
}

std::optional<size_t> mixing_part(std::span<const NamedPart> parts) {
  std::optional<size_t> mixing;
  for (size_t p = 0; p < parts.size(); ++p) {
    if (!parts[p].part->mixes()) continue;
    if (mixing) fail<InputError>("mix: only one of several inputs can mix samples; leave it to one of them");
    mixing = p;
  }
  return mixing;
}

namespace {

/// What is mixed into rows of `row` bytes, as Part::mix() mixes them: each of the first `count` has the one
/// before it, what stands behind them is the same.
void copy_mixed(std::span<const std::byte> rows, size_t row, int64_t count, std::byte* to) {
  std::memcpy(to, rows.data(), rows.size());
  if (count == 0) return;
  const size_t rest = row * static_cast<size_t>(count - 1);
  std::memcpy(to, rows.data() + rest, row);
  std::memcpy(to + row, rows.data(), rest);
}

}  // namespace

void finish_batch(std::span<const NamedPart> parts, std::span<std::byte* const> arrays, int64_t batch,
                  int64_t valid, int64_t length, const SampleKey& key,
                  std::span<const std::unique_ptr<Part::Scratch>> scratch) {
  std::vector<std::span<std::byte* const>> own;  // arrays of each part
  size_t mixed = 0;                              // the array behind those of the parts
  for (const NamedPart& each : parts) {
    own.push_back(arrays.subspan(mixed, each.part->fields().size()));
    mixed += own.back().size();
  }
  const auto mixing = mixing_part(parts);
  float share = 1;
  if (mixing && valid > 0) share = parts[*mixing].part->mix(own[*mixing], valid, key, scratch[*mixing].get());
  for (size_t p = 0; p < parts.size(); ++p) parts[p].part->finish(batch, length, own[p]);
  if (!mixing) return;
  for (size_t p = 0; p < parts.size(); ++p)
    for (size_t k = 0; k < own[p].size() && parts[p].target; ++k) {
      const size_t row = row_bytes(parts[p].part->fields()[k].type, length);
      copy_mixed({own[p][k], row * static_cast<size_t>(batch)}, row, valid, arrays[mixed++]);
    }
  std::fill_n(reinterpret_cast<float*>(arrays[mixed]), batch, share);
}

ColumnPlace::ColumnPlace(const Dataset& dataset, std::string name)
    : name_(std::move(name)), place_(dataset.column(name_)) {}

size_t ColumnPlace::in(const Dataset& dataset) const {
  const auto& columns = dataset.columns();
  return place_ < columns.size() && columns[place_].name == name_ ? place_ : dataset.column(name_);
}

}  // namespace millrace::data
