// Data sets of any format: samples with named columns and random access.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <millrace/array.h>
#include <millrace/file.h>

namespace millrace::data {

/// A picture that is stored decoded: height·width·channels bytes, channels together (HWC).
struct Pixels {
  int height = 0, width = 0, channels = 0;
  Bytes bytes;
};

enum class ColumnKind {
  integer,  // int64_t
  real,     // double
  text,     // std::string, UTF-8
  json,     // std::string
  bytes,    // Bytes
  picture,  // Bytes (an encoded file) or Pixels
  audio,    // Bytes (an encoded file)
  array,    // Array
};
const char* kind_name(ColumnKind kind);
/// Are the values numbers?
inline bool is_numeric(ColumnKind kind) { return kind == ColumnKind::integer || kind == ColumnKind::real; }
/// Are they what cells of tables hold, numbers or texts?
inline bool is_tabular(ColumnKind kind) { return is_numeric(kind) || kind == ColumnKind::text; }

struct Column {
  std::string name;
  ColumnKind kind = ColumnKind::bytes;
  bool operator==(const Column&) const = default;
};

/// A value of a column's kind; std::monostate where a sample has none.
using Value = std::variant<std::monostate, int64_t, double, std::string, Bytes, Pixels, Array>;
/// The number, whole or not, that it is; nothing of all else.
inline std::optional<double> number_value(const Value& value) {
  if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  const auto* real = std::get_if<double>(&value);
  return real ? std::optional(*real) : std::nullopt;
}

/// For people, on one line of at most about `width` characters: "7", "\"a text…\"", "picture 32x32 colour",
/// "888 bytes", "f32[2, 3] 0 1 2 …", "-" for a missing one.
std::string value_text(const Value& value, ColumnKind kind, size_t width = 60);

/// One of the arrays has an entry for each sample, as the kind says; what it holds for a missing one means
/// nothing.
struct ColumnValues {
  ColumnKind kind = ColumnKind::text;
  std::vector<uint8_t> present;  // 1 or 0; empty: all are
  std::vector<int64_t> integers;
  std::vector<double> reals;
  /// Texts, contents, and the elements of arrays (of rank 1, of type `element`), as long as `owners` live.
  std::vector<std::string_view> contents;
  DType element = f32;
  std::vector<std::shared_ptr<const void>> owners;

  bool has(size_t i) const { return present.empty() || present[i]; }
  size_t size() const {
    return kind == ColumnKind::integer ? integers.size()
           : kind == ColumnKind::real  ? reals.size()
                                       : contents.size();
  }
};

/// Value i, i < size(); contents share the memory of `values`.
Value value_at(const std::shared_ptr<const ColumnValues>& values, size_t i);

/// Where a sample lies: bytes of one of Dataset::files().
struct SampleExtent {
  size_t file = 0;
  uint64_t offset = 0, size = 0;
};

class Dataset;

/// The rows of a table that one sample is made of (data/table/group.h); no table where a sample is a row
/// itself.
struct SampleRows {
  std::shared_ptr<const Dataset> table = nullptr;
  std::span<const int64_t> rows = {};
};

/// A column of arrays that are so many columns of numbers: what the first is numbered in the data, and how
/// many there are. Any others are zeros that the data do not say (LIBSVM).
struct ArrayElements {
  int64_t first = 0, count = 0;
};

/// An opened data set. All members may be called from many threads at once; indices go from 0 to count() - 1.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t count() const = 0;
  /// One column of one sample; only the bytes that it needs are read. InputError when they are damaged,
  /// IoError when they cannot be read.
  virtual Value read(int64_t index, size_t column) const = 0;
  /// Samples `first` to `first` + `count` - 1, these columns, each as read() gives it. Formats of tables do
  /// that much faster than value by value; false, and nothing done, by others. The memory of `values` is used
  /// again. Errors as of read().
  virtual bool read_run(int64_t /*first*/, int64_t /*count*/, std::span<const size_t> /*columns*/,
                        std::vector<ColumnValues>& /*values*/) const {
    return false;
  }
  /// False when it is known without reading that the sample has no value in this column (a file that a folder
  /// has not); of what stands in a row of texts only read() tells.
  virtual bool has(int64_t /*index*/, size_t /*column*/) const { return true; }
  /// What the numbers of a column of classes stand for; empty when the data does not say. InputError when the
  /// column cannot be used for classes.
  virtual std::vector<std::string> class_names(size_t /*column*/) const { return {}; }
  /// The column whose values are all whole numbers from 0 to below the number of its class_names(), where
  /// that is so for sure.
  virtual std::optional<size_t> class_column() const { return std::nullopt; }
  /// A column of numbers that are written with decimal commas: "1.234,5".
  virtual bool decimal_comma(size_t /*column*/) const { return false; }
  virtual std::optional<ArrayElements> elements(size_t /*column*/) const { return std::nullopt; }
  /// Of samples that are made of several rows: which. They live as long as the data set.
  virtual SampleRows rows(int64_t /*index*/) const { return {}; }
  /// What it lacks to learn classes from, as a whole message; empty when nothing is known.
  virtual std::string lacks() const { return {}; }
  /// Where a sample is, for messages: "train.rec#17".
  virtual std::string name(int64_t index) const;
  /// Says that a sample will be read soon; never fails.
  virtual void will_read(int64_t index) const;
  /// The files that it was opened from, and where a sample lies in them (all of one file before the next);
  /// nothing where it has no bytes of its own.
  virtual std::span<const std::shared_ptr<const RandomAccessFile>> files() const { return {}; }
  virtual std::optional<SampleExtent> extent(int64_t /*index*/) const { return std::nullopt; }
  /// Which of files() a sample comes from, also where it has no bytes of its own there (all of one file
  /// before the next).
  virtual std::optional<size_t> source_file(int64_t index) const {
    const auto at = extent(index);
    return at ? std::optional(at->file) : std::nullopt;
  }
  /// Compares the checksums that the format has; InputError says what differs.
  virtual void verify(int64_t /*index*/) const {}

  const std::vector<Column>& columns() const { return columns_; }
  /// The place of a column; InputError names the nearest one when there is none of this name.
  size_t column(std::string_view name) const;
  /// The same; nothing when there is none of this name.
  std::optional<size_t> find_column(std::string_view name) const;
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
  /// The values of one sample in the order of the columns. InputError when the format cannot hold one;
  /// IoError when the disk is full.
  virtual void add(std::span<const Value> values) = 0;
  /// What was written is whole and in its place when this returns; without it nothing new is there.
  virtual void finish() = 0;
};

struct OpenOptions {
  /// Index sidecars are used where they fit.
  bool use_indices = true;
  /// CSV: whether the first line has the names of the columns; by default it is found from the content.
  std::optional<bool> header = std::nullopt;
  /// CSV: columns that hold texts, whatever their values look like ("007").
  std::vector<std::string> texts = {};
  /// CSV: further words for what is missing ("unknown", "-999").
  std::vector<std::string> missing = {};
};

/// Opens what `path` names, here or on a server (https://, s3://); the format is found from the content:
///  - a folder with a folder of files for each class; folders above (train/, test/) are looked through;
///  - tars: of such folders, or WebDataset shards; several by "train-{000..007}.tar", "train-*.tar", or their
///  folder;
///  - an IDX file of pictures (MNIST), plain or gzipped, its labels beside it (images-idx3 → labels-idx1);
///  - files of the other formats (docs/data.md, and a program's own: format.h), several of one in the same
///  ways; a folder with an
///    index.json (MDS).
/// InputError or IoError, naming the file and what to do, when it is none of these, missing, empty, truncated
/// or damaged.
std::unique_ptr<Dataset> open_dataset(const std::string& path, const OpenOptions& options = {});

/// Rows in memory as a data set, a value of each row for each column; `name` is what messages call it.
/// InputError when a row has another number of values, or one that is not of its column's kind.
std::unique_ptr<Dataset> memory_dataset(std::string name, std::vector<Column> columns,
                                        std::vector<std::vector<Value>> rows);

/// These samples, in this order. Classes stay all those of the whole. InputError when there is no such
/// sample.
std::shared_ptr<const Dataset> select(std::shared_ptr<const Dataset> dataset, std::vector<int64_t> samples);
/// Those that a condition is true for, as recipes write them (data.where): "label in (3, 5) and width > 200".
/// InputError that shows the place when it is no condition, a column is unknown, or compared with what it
/// cannot be; and when it is true for none.
std::shared_ptr<const Dataset> where(std::shared_ptr<const Dataset> dataset, std::string_view condition);
/// Samples `first` to `first` + `count` - 1. InputError where there are fewer.
std::shared_ptr<const Dataset> slice(std::shared_ptr<const Dataset> dataset, int64_t first, int64_t count);

}  // namespace millrace::data
