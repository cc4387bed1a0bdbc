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

class Index;  // index.h

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

/// A file format; each one is a file in formats/ and a line in formats/formats.cpp.
struct Format {
  const char* name;         // "recordio", as --format takes it
  const char* description;  // "MXNet RecordIO (.rec)"
  /// Could a file be of this format? `head`: its first bytes (up to 4,096).
  bool (*matches)(std::string_view path, std::span<const uint8_t> head);
  /// Opens a file or several of the same columns, one after the other; `path` is what the user wrote. InputError when one
  /// is damaged or empty.
  std::unique_ptr<Dataset> (*open)(const std::string& path,
                                   std::vector<std::shared_ptr<const RandomAccessFile>> files);
  /// InputError when the format cannot hold such columns; null where it is only read.
  std::unique_ptr<DatasetWriter> (*create)(const std::string& path, const std::vector<Column>& columns);
  /// Opens files by their indices, one each, located() and of a sample at least, without going through them; null where there is nothing to gain.
  std::unique_ptr<Dataset> (*open_indexed)(const std::string& path,
                                           std::vector<std::shared_ptr<const RandomAccessFile>> files,
                                           std::vector<std::shared_ptr<const Index>> indices) = nullptr;
  /// As `open`, told what the user knows of it: whether there is a line of names, and which columns hold texts whatever their
  /// values look like; null where the format knows.
  std::unique_ptr<Dataset> (*open_known)(const std::string& path,
                                         std::vector<std::shared_ptr<const RandomAccessFile>> files,
                                         std::optional<bool> header,
                                         std::span<const std::string> texts) = nullptr;
};

const std::vector<const Format*>& formats();
/// The format of this name; InputError names the nearest.
const Format& format_named(std::string_view name);
/// The first format that could be that of the file; null when it is none's.
const Format* format_of(const RandomAccessFile& file);

/// The file that stands for a data set: index.json of a folder that has one, else `path` itself.
std::string data_file(const std::string& path);

struct OpenOptions {
  /// Index sidecars are used where they fit (index.h).
  bool use_indices = true;
  /// CSV: whether the first line has the names of the columns; by default it is found from the content.
  std::optional<bool> header = std::nullopt;
  /// CSV: columns that hold texts, whatever their values look like ("007").
  std::vector<std::string> texts = {};
};

/// Opens what `path` names (globs, braces and folders of shards as in open_source; a folder with an index.json, too); the
/// format is found from the content. InputError or IoError says what is wrong.
std::unique_ptr<Dataset> open_dataset(const std::string& path, const OpenOptions& options = {});
/// The same for files that are known by name; `path` is what the user wrote.
std::unique_ptr<Dataset> open_dataset(const std::string& path, const std::vector<std::string>& files,
                                      const OpenOptions& options = {});
/// The same for data without a column of pictures; null when it has one, or is of none of the formats with columns.
std::unique_ptr<Dataset> open_table(const std::string& path, const OpenOptions& options = {});
/// The tars in a folder, in the order of their names; empty when `path` is no folder or has none.
std::vector<std::string> tars_in(const std::string& path);

}  // namespace millrace::data
