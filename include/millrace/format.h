// File formats of data sets.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset.h>

namespace millrace::data {

class Index;  // of the library: where samples lie in a file

/// A file format.
struct Format {
  std::string name;      // "recordio", as --format takes it
  std::string doc = {};  // "MXNet RecordIO (.rec)"
  int place = 0;         // in the order in which a file is tried; the library's have 10, 20 …
  /// Could a file be of this format? `head`: its first bytes (up to 4,096).
  bool (*matches)(std::string_view path, std::span<const uint8_t> head) = nullptr;
  /// Opens a file or several of the same columns, one after the other; `path` is what the user wrote.
  /// `options`: what the user knows of them. InputError when one is damaged or empty.
  std::unique_ptr<Dataset> (*open)(const std::string& path, Files files,
                                   const OpenOptions& options) = nullptr;
  /// InputError when the format cannot hold such columns; null where it is only read.
  std::unique_ptr<DatasetWriter> (*create)(const std::string& path,
                                           const std::vector<Column>& columns) = nullptr;
  /// Opens files by their indices, one each, located() and of a sample at least, without going through them;
  /// null where there is nothing to gain.
  std::unique_ptr<Dataset> (*open_indexed)(const std::string& path, Files files,
                                           std::vector<std::shared_ptr<const Index>> indices) = nullptr;
  /// The further file that goes with one of this name and that `create` may write, too ("x.idx" of "x.rec");
  /// null where there is none.
  std::string (*beside)(const std::string& path) = nullptr;
  /// What `create` writes goes into one file from its beginning to its end, so that it may be a pipe.
  bool pipes = false;
};

/// Adds a format to those of the library: recipes and open_dataset() know its files by their content.
/// InputError when its name is taken, or `doc`, `matches` or `open` are missing.
const Format& register_format(const Format& format);

}  // namespace millrace::data
