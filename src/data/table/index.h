// The index sidecar of a data file, FILE.mrx: where each sample lies, its key, its checksum and its small
// values, so that opening, choosing and checking samples needs no pass over the file. docs/mrx.md has the
// layout byte by byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset.h>
#include <millrace/file.h>

#include "data/codecs/pictures/picture_size.h"

namespace millrace::data {

/// An opened index, checked: every offset lies within the file that it describes. Members may be called from
/// many threads.
class Index {
 public:
  /// A column of small values: integers, reals or texts.
  struct Small {
    Column column;
    std::span<const uint64_t> numbers;    // integers, or the bits of reals
    std::span<const uint32_t> codes;      // of texts, into the dictionary; `no_text` for a missing one
    std::span<const uint8_t> present;     // a bit a sample; empty when all are there
    std::span<const uint64_t> text_ends;  // of the dictionary's texts
    std::string_view texts;
  };
  static constexpr uint32_t no_text = 0xffffffff;

  /// `bytes` are the whole index; `path` is for messages. InputError when it is damaged or of another
  /// version.
  static std::shared_ptr<const Index> parse(Bytes bytes, const std::string& path);

  int64_t count() const { return count_; }
  /// Of the data set: what Format::name says, and all columns, small or not.
  const std::string& format() const { return format_; }
  const std::vector<Column>& columns() const { return columns_; }
  /// Why its texts called label are no classes (Dataset::class_names), a whole message; empty when they are.
  const std::string& class_fault() const { return class_fault_; }
  /// Of the file that it describes; RandomAccessFile::version() when it was made.
  uint64_t file_size() const { return file_size_; }
  int64_t file_modified() const { return file_modified_; }

  std::string_view key(int64_t i) const;
  /// False: there are no offsets, sizes and checksums (samples have no bytes of their own, as in Parquet
  /// files).
  bool located() const { return !offsets_.empty() || count_ == 0; }
  uint64_t offset(int64_t i) const { return offsets_[static_cast<size_t>(i)]; }
  uint64_t size(int64_t i) const { return sizes_[static_cast<size_t>(i)]; }
  /// CRC-32C of those bytes.
  uint32_t checksum(int64_t i) const { return checksums_[static_cast<size_t>(i)]; }
  /// Has the sample a value in columns()[column]?
  bool has(int64_t i, size_t column) const { return bit(present_[column], i); }

  const std::vector<Small>& small() const { return small_; }
  /// Null when there is no small column of this name.
  const Small* small(std::string_view name) const;
  Value value(const Small& small, int64_t i) const;
  static std::string_view text(const Small& small, uint32_t code);

 private:
  static bool bit(std::span<const uint8_t> bits, int64_t i) {
    return bits.empty() || (bits[static_cast<size_t>(i / 8)] >> (i % 8) & 1) != 0;
  }

  friend class IndexParser;
  Bytes bytes_;
  int64_t count_ = 0, file_modified_ = 0;
  uint64_t file_size_ = 0;
  std::string format_, class_fault_;
  std::vector<Column> columns_;
  std::vector<std::span<const uint8_t>> present_;
  std::span<const uint64_t> offsets_, sizes_, key_ends_;
  std::span<const uint32_t> checksums_;
  std::string_view keys_;
  std::vector<Small> small_;
};

/// Where the index of a file is written: "x.tar" → "x.tar.mrx"; of a remote one in cache_folder("index"),
/// named by a hash of its URL.
std::filesystem::path index_path(const std::string& file);

/// The index of a file: where index_path() says, and of a remote one also what the server has beside it
/// (FILE.mrx, which needs to agree in size only). Null when there is none, or none that fits: then `why` says
/// so as a message for the user. `old`: also one that is of another time, as long as the size is the same.
std::shared_ptr<const Index> open_index(const RandomAccessFile& file, std::string& why, bool old = false);

struct IndexResult {
  std::string path;
  int64_t samples = 0;
  uint64_t bytes = 0;
};
/// Writes the index beside each file of the data set. Small columns are integers, reals, texts of up to 255
/// bytes, width and height of the first column of pictures (from their headers), and split (split_of()) where
/// every sample has one. What cannot be read is missing in it. `progress`: (samples done, in all). InputError
/// when the format cannot say where its samples lie; IoError when it cannot be written.
std::vector<IndexResult> write_indices(const Dataset& dataset,
                                       const std::function<void(int64_t, int64_t)>& progress = {});

/// Indices that together describe all samples in order: those beside the files where all fit and have these
/// small columns (all of `names`), else one that is made in memory, of these columns alone.
std::vector<std::shared_ptr<const Index>> indices_for(const Dataset& dataset,
                                                      const std::set<std::string>& names);

/// The value of the small column `split`: train, val, valid, validation or test where that is a folder of the
/// key or the file's name begins with it; else "".
std::string split_of(std::string_view key, const std::string& file);

/// A value of a sample; what cannot be read is missing: the data set's readers say why when it is wanted.
Value read_or_missing(const Dataset& dataset, int64_t index, size_t column);
/// The small columns `width` and `height`: of the first picture that a sample has, by its header.
std::optional<PictureSize> size_of_picture(const Dataset& dataset, int64_t index);

/// The names that small columns of a data set can have.
std::vector<std::string> small_names(const Dataset& dataset);

}  // namespace millrace::data
