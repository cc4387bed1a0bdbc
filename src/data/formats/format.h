// What a file format is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset.h>
#include <millrace/file.h>

#include "data/table/index.h"

namespace millrace::data {

/// A file format; each one is a file here with MILLRACE_FORMAT(name){…}.
struct Format {
  std::string name;      // "recordio", as --format takes it
  std::string doc = {};  // "MXNet RecordIO (.rec)"
  int place = 0;         // in the order in which a file is tried; the library's have 10, 20 …
  /// Could a file be of this format? `head`: its first bytes (up to 4,096).
  bool (*matches)(std::string_view path, std::span<const uint8_t> head) = nullptr;
  /// Opens a file or several of the same columns, one after the other; `path` is what the user wrote. InputError when one
  /// is damaged or empty.
  std::unique_ptr<Dataset> (*open)(const std::string& path,
                                   std::vector<std::shared_ptr<const RandomAccessFile>> files) = nullptr;
  /// InputError when the format cannot hold such columns; null where it is only read.
  std::unique_ptr<DatasetWriter> (*create)(const std::string& path,
                                           const std::vector<Column>& columns) = nullptr;
  /// Opens files by their indices, one each, located() and of a sample at least, without going through them; null where there is
  /// nothing to gain.
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

#define MILLRACE_FORMAT(NAME)        \
  extern const Format format_##NAME; \
  const Format format_##NAME

}  // namespace millrace::data
