// Samples in memory for tests of feeds, and copies of batches.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/feed/array_part.h"
#include "data/feed/picture_part.h"
#include "data/feed/sample_feed.h"
#include "support/pictures.h"

namespace millrace::testing {

/// Raw pictures in memory, with classes and a score; some may be bad. Counts how often pictures are read.
class MemoryPictures final : public data::Dataset {
 public:
  explicit MemoryPictures(int64_t count, std::set<int64_t> bad = {})
      : Dataset("memory"), count_(count), bad_(std::move(bad)) {
    columns_ = {{"picture", data::ColumnKind::picture},
                {"label", data::ColumnKind::integer},
                {"score", data::ColumnKind::real}};
  }
  int64_t count() const override { return count_; }
  std::string name(int64_t index) const override { return "memory[" + std::to_string(index) + "]"; }
  data::Value read(int64_t index, size_t column) const override {
    if (column == 1) return index % 3;
    if (column == 2) return static_cast<double>(index % 5);
    ++reads;
    if (fail_at == index) throw std::runtime_error("the disk is on fire");
    data::Bytes bytes(make_picture(6, 6, 3, static_cast<uint64_t>(index)).pixels);
    if (bad_.contains(index)) return bytes;  // no raw size: bytes that are no JPEG
    return data::Pixels{6, 6, 3, bytes};
  }
  mutable std::atomic<int64_t> reads{0};
  std::atomic<int64_t> fail_at{-1};

 private:
  int64_t count_;
  std::set<int64_t> bad_;
};

/// labels i64 [batch], -1 where the batch is padded.
inline std::shared_ptr<const data::Part> label_part() {
  const auto reader = [](const data::Dataset& from, int64_t first, int64_t count,
                         std::span<std::byte* const> rows) {
    for (int64_t i = 0; i < count; ++i) {
      const auto label = std::get<int64_t>(from.read(first + i, from.column("label")));
      std::memcpy(rows[0] + i * 8, &label, 8);
    }
  };
  return std::make_shared<data::ArrayPart>(std::vector<data::Field>{{"labels", {i64, {Dim::named("batch")}}}},
                                           reader,
                                           data::ArrayPartOptions{{data::pad_of(int64_t{-1})}, false});
}

/// The pictures and labels of a data set.
inline std::vector<data::NamedPart> picture_parts(const data::Dataset& dataset,
                                                  std::vector<std::string> augment = {},
                                                  std::vector<std::string> mix = {}) {
  data::PictureOptions options;
  options.augment = std::move(augment);
  options.mix = std::move(mix);
  return {{"", data::picture_part(dataset, options), false}, {"", label_part(), true}};
}

template <typename T>
std::vector<T> values_of(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

struct FeedCopy {
  std::vector<std::vector<std::byte>> arrays;
  std::vector<int64_t> samples;
  int64_t valid = 0;
  data::Cursor start;
  bool operator==(const FeedCopy&) const = default;
};

inline FeedCopy copy_of(const data::FeedBatch& batch) {
  FeedCopy copy{{}, {batch.samples.begin(), batch.samples.end()}, batch.valid, batch.start};
  for (const auto& array : batch.arrays) copy.arrays.emplace_back(array.begin(), array.end());
  return copy;
}

inline std::vector<FeedCopy> take_batches(data::Feed& feed, int batches) {
  std::vector<FeedCopy> out;
  for (int i = 0; i < batches; ++i) out.push_back(copy_of(feed.next()));
  return out;
}

inline std::unique_ptr<data::Feed> picture_feed_of(std::shared_ptr<const data::Dataset> dataset,
                                                   const data::FeedOptions& options,
                                                   const data::OrderedSamples& order = {"shuffle"},
                                                   std::vector<std::string> augment = {"pad-crop 2", "flip",
                                                                                       "rotate 20"},
                                                   std::vector<std::string> mix = {}) {
  auto parts = picture_parts(*dataset, std::move(augment), std::move(mix));
  auto rows = data::sample_rows(*dataset, order);
  return data::sample_feed(std::move(dataset), std::move(parts), std::move(rows), options);
}

}  // namespace millrace::testing
