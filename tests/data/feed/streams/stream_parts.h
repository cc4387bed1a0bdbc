// Small parts for the tests of the feed of streams: pictures, changed by what names a row, and classes.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "data/codecs/pictures/frame.h"
#include "data/codecs/pictures/picture_reader.h"
#include "data/feed/part.h"
#include "data/feed/streams/stream_feed.h"
#include "data/table/contents.h"

namespace millrace::testing {

/// u8 [batch, 3, H, W], of the size of the first good picture; each byte moved on by the row's key. Mixed: a
/// row becomes the sum of itself and the one before it.
class StreamPicturesPart final : public data::Part {
 public:
  explicit StreamPicturesPart(const data::Dataset& head, bool mixed = false) : mixed_(mixed) {
    for (int64_t i = 0; i < head.count() && size_ == 0; ++i) {
      data::PictureReader reader;
      if (!open(head, i, reader).empty()) continue;
      height_ = reader.height();
      width_ = reader.width();
      size_ = size_t{3} * static_cast<size_t>(height_ * width_);
      std::vector<std::byte> ignored(size_);
      if (!load(reader, ignored.data()).empty()) size_ = 0;
    }
    if (size_ == 0)
      fail<InputError>("{}: none of its first {} samples is a picture", head.path(), head.count());
    fields_ = {{"pictures", {u8, {Dim::named("batch"), 3, height_, width_}}}};
  }

  struct Reader final : Scratch {
    data::PictureReader reader;
  };
  std::unique_ptr<Scratch> scratch() const override { return std::make_unique<Reader>(); }
  std::span<const data::Field> fields() const override { return fields_; }
  size_t stored_bytes() const override { return size_; }
  std::string read(const data::Dataset& from, int64_t index, const data::SampleKey* /*random*/,
                   Scratch* scratch, std::byte* stored) const override {
    data::PictureReader& reader = static_cast<Reader&>(*scratch).reader;
    if (std::string why = open(from, index, reader); !why.empty()) return why;
    if (reader.height() != height_ || reader.width() != width_)
      fail<InputError>("{} is of another size", from.name(index));
    return load(reader, stored);
  }
  void put(const std::byte* stored, const data::Row& row, Scratch*,
           std::span<std::byte* const> arrays) const override {
    const data::SampleKey& key = row.key;
    const auto by = static_cast<unsigned>(static_cast<int64_t>(key.seed) + 3 * key.epoch + 5 * key.position +
                                          7 * key.index);
    for (size_t i = 0; i < size_; ++i)
      arrays[0][i] = static_cast<std::byte>(std::to_integer<unsigned>(stored[i]) + by);
  }
  bool mixes() const override { return mixed_; }
  float mix(std::span<std::byte* const> arrays, int64_t count, const data::SampleKey& batch,
            Scratch*) const override {
    const std::vector<std::byte> own(arrays[0], arrays[0] + size_ * static_cast<size_t>(count));
    for (size_t i = 0; i < own.size(); ++i)
      arrays[0][i] =
          static_cast<std::byte>(std::to_integer<unsigned>(own[i]) +
                                 std::to_integer<unsigned>(own[(i + own.size() - size_) % own.size()]));
    return 1 / static_cast<float>(2 + batch.epoch + batch.position);
  }

 private:
  static std::string open(const data::Dataset& from, int64_t index, data::PictureReader& reader) {
    const data::Value value = data::Contents(from, data::ColumnKind::picture).read(index);
    if (std::holds_alternative<std::monostate>(value)) return "has no picture";
    return reader.open(data::stored_picture(value));
  }
  static std::string load(data::PictureReader& reader, std::byte* planes) {
    const int height = reader.height(), width = reader.width();
    return reader.load(data::whole_frame(height, width, height, width), 3, false,
                       reinterpret_cast<uint8_t*>(planes));
  }

  bool mixed_;
  int height_ = 0, width_ = 0;
  size_t size_ = 0;
  std::vector<data::Field> fields_;
};

/// i64 [batch]: a column of whole numbers below `classes`; -1 where a row pads.
class StreamClassesPart final : public data::Part {
 public:
  StreamClassesPart(const data::Dataset& head, const std::string& column, int64_t classes)
      : column_(head, column), classes_(classes) {}
  std::span<const data::Field> fields() const override { return fields_; }
  size_t stored_bytes() const override { return sizeof(int64_t); }
  std::string read(const data::Dataset& from, int64_t index, const data::SampleKey*, Scratch*,
                   std::byte* stored) const override {
    const data::Value value = from.read(index, column_.in(from));
    const auto* const number = std::get_if<int64_t>(&value);
    if (!number) return fmt::format("has no {}", column_.name());
    if (*number >= classes_) return fmt::format("is of class {}, there are {}", *number, classes_);
    std::memcpy(stored, number, sizeof *number);
    return {};
  }
  void put(const std::byte* stored, const data::Row&, Scratch*,
           std::span<std::byte* const> arrays) const override {
    std::memcpy(arrays[0], stored, sizeof(int64_t));
  }
  void pad(const data::Row&, std::span<std::byte* const> arrays) const override {
    std::memset(arrays[0], 0xff, sizeof(int64_t));
  }

 private:
  data::ColumnPlace column_;
  int64_t classes_;
  std::vector<data::Field> fields_ = {{"labels", {i64, {Dim::named("batch")}}}};
};

inline data::StreamParts stream_parts(const std::string& column = "cls", bool mixed = false) {
  return [=](const data::Dataset& head) {
    std::vector<data::NamedPart> parts;
    parts.push_back({"", std::make_shared<const StreamPicturesPart>(head, mixed), false});
    parts.push_back({"", std::make_shared<const StreamClassesPart>(head, column, 3), true});
    return parts;
  };
}

/// What a batch of these parts holds.
struct StreamBatch {
  std::vector<std::byte> pictures;
  std::vector<int64_t> labels, indices;
  std::vector<std::string> names;
  std::vector<float> weights;
  bool operator==(const StreamBatch&) const = default;
};

template <typename T>
std::vector<T> array_of(const data::Feed& feed, const data::FeedBatch& batch, std::string_view name) {
  const std::span<const std::byte> bytes = batch.arrays[feed.field(name)];
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

inline std::vector<StreamBatch> take_stream_batches(data::Feed& feed, int count) {
  std::vector<StreamBatch> taken;
  for (int i = 0; i < count; ++i) {
    const data::FeedBatch& batch = feed.next();
    taken.push_back({array_of<std::byte>(feed, batch, "pictures"),
                     array_of<int64_t>(feed, batch, "labels"),
                     {batch.samples.begin(), batch.samples.end()},
                     {batch.names.begin(), batch.names.end()},
                     {}});
    if (feed.has_field("weights")) taken.back().weights = array_of<float>(feed, batch, "weights");
  }
  return taken;
}

inline std::unique_ptr<data::StreamFeed> feed_of_stream(std::unique_ptr<data::Stream> stream,
                                                        const data::StreamFeedOptions& options,
                                                        const data::StreamParts& parts = stream_parts()) {
  std::vector<data::NamedStream> one;
  one.push_back({"", std::move(stream)});
  return data::stream_feed(std::move(one), parts, options);
}

}  // namespace millrace::testing
