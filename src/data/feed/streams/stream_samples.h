// Records of a stream as samples that parts read. Part of the feed of streams.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <millrace/dataset.h>

#include "data/formats/streams/stream.h"

namespace millrace::data {

/// A record opened: a data set of one sample, or why it is bad.
struct OpenedRecord {
  /// "news: a.tar (sample 3)", with its __key__ "news: a.tar:00003".
  std::string name;
  std::string why;  // "": it is good
  /// Its name(0) is `name`. It has the sample's own columns, and those asked for, without a value where it
  /// has none.
  std::shared_ptr<const Dataset> sample;
  float weight = 1;
};

/// How the records of one stream are opened. The stream must stay. For many threads at once.
class RecordOpener {
 public:
  /// `source`: what names begin with, "" for nothing. `weight`: the column of weights, "" for none.
  RecordOpener(const Stream& stream, const std::string& source, std::string weight)
      : stream_(&stream), source_(source.empty() ? "" : source + ": "), weight_(std::move(weight)) {}
  OpenedRecord open(const StreamRecord& record, const std::vector<Column>& columns) const;

 private:
  const Stream* stream_;
  std::string source_, weight_;
};

/// Some records, of one or more streams, as one data set with the columns of all: those of one name are one.
/// They share the records' memory and are opened when they are read. The streams must stay.
class StreamHead final : public Dataset {
 public:
  explicit StreamHead(const Stream& stream) : Dataset(stream.path()) { set_origin(stream.format(), {}); }
  /// "", or why the record is bad; it is left out then.
  std::string add(const RecordOpener& opener, const StreamRecord& record);

  int64_t count() const override { return static_cast<int64_t>(entries_.size()); }
  Value read(int64_t index, size_t column) const override;
  bool has(int64_t index, size_t column) const override;
  std::string name(int64_t index) const override { return entries_.at(static_cast<size_t>(index)).name; }

  /// The last sample that was looked at since; -1: none.
  void watch() const { furthest_ = -1; }
  int64_t furthest() const { return furthest_; }

 private:
  struct Entry {
    RecordOpener opener;
    StreamRecord record;
    std::string name;
  };
  std::shared_ptr<const Dataset> opened(int64_t index) const;

  std::vector<Entry> entries_;
  std::vector<bool> open_;  // columns of which no sample has said anything yet: their kind is not known
  mutable std::atomic<int64_t> furthest_{-1};
  mutable std::mutex mutex_;  // guards the sample opened last
  mutable int64_t last_ = -1;
  mutable std::shared_ptr<const Dataset> last_sample_;
};

}  // namespace millrace::data
