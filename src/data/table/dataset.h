// Data sets of any format: samples with named columns and random access.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/io/random_access_file.h"
#include "data/table/column_values.h"
#include "data/table/value.h"

namespace millrace::data {

/// Where a sample lies: bytes of one of Dataset::files().
struct SampleExtent {
  size_t file = 0;
  uint64_t offset = 0, size = 0;
};

/// An opened data set. All members may be called from many threads at once; indices go from 0 to count() - 1.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t count() const = 0;
  /// One column of one sample; only the bytes that it needs are read. InputError when they are damaged, IoError when they
  /// cannot be read.
  virtual Value read(int64_t index, size_t column) const = 0;
  /// Samples `first` to `first` + `count` - 1, these columns, each as read() gives it. Formats of tables do that much faster
  /// than value by value; false, and nothing done, by others. The memory of `values` is used again. Errors as of read().
  virtual bool read_run(int64_t /*first*/, int64_t /*count*/, std::span<const size_t> /*columns*/,
                        std::vector<ColumnValues>& /*values*/) const {
    return false;
  }
  /// False when the sample has no value in this column; answers without reading the value.
  virtual bool has(int64_t /*index*/, size_t /*column*/) const { return true; }
  /// What the numbers of a column of classes stand for; empty when the data does not say. InputError when the column cannot be
  /// used for classes.
  virtual std::vector<std::string> class_names(size_t /*column*/) const { return {}; }
  /// The column whose values are all whole numbers from 0 to below the number of its class_names(), where that is so for sure
  /// (labels.h makes one).
  virtual std::optional<size_t> class_column() const { return std::nullopt; }
  /// What it lacks to learn classes from, as a whole message; empty when nothing is known.
  virtual std::string lacks() const { return {}; }
  /// Where a sample is, for messages: "train.rec#17".
  virtual std::string name(int64_t index) const;
  /// Says that a sample will be read soon; never fails.
  virtual void will_read(int64_t index) const;
  /// The files that it was opened from, and where a sample lies in them (all of one file before the next); nothing where it has
  /// no bytes of its own.
  virtual std::span<const std::shared_ptr<const RandomAccessFile>> files() const { return {}; }
  virtual std::optional<SampleExtent> extent(int64_t /*index*/) const { return std::nullopt; }
  /// Which of files() a sample comes from, also where it has no bytes of its own there (all of one file before the next).
  virtual std::optional<size_t> source_file(int64_t index) const {
    const auto at = extent(index);
    return at ? std::optional(at->file) : std::nullopt;
  }
  /// Compares the checksums that the format has; InputError says what differs.
  virtual void verify(int64_t /*index*/) const {}

  const std::vector<Column>& columns() const { return columns_; }
  /// The place of a column; InputError names the nearest one when there is none of this name.
  size_t column(std::string_view name) const;
  /// What it was opened from.
  const std::string& path() const { return path_; }
  /// The name of its format.
  const std::string& format() const { return format_; }
  /// What the user should know about how it was opened, each a message: an index that does not fit.
  const std::vector<std::string>& notes() const { return notes_; }
  /// As open_dataset() found it.
  void set_origin(std::string format, std::vector<std::string> notes) {
    format_ = std::move(format);
    notes_.insert(notes_.begin(), notes.begin(), notes.end());
  }

 protected:
  explicit Dataset(std::string path) : path_(std::move(path)) {}
  void note(std::string message) { notes_.push_back(std::move(message)); }
  std::vector<Column> columns_;

 private:
  std::string path_, format_;
  std::vector<std::string> notes_;
};

/// Writes a data set, sample by sample.
class DatasetWriter {
 public:
  virtual ~DatasetWriter() = default;
  /// The values of one sample in the order of the columns. InputError when the format cannot hold one; IoError when the
  /// disk is full.
  virtual void add(std::span<const Value> values) = 0;
  /// What was written is whole and in its place when this returns; without it nothing new is there.
  virtual void finish() = 0;
};

}  // namespace millrace::data
