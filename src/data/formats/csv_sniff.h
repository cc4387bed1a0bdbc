// What kind of delimited text a file is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/formats/csv_scan.h"

namespace millrace::data {

/// What the values of a column are so far; each can hold all before it.
enum class CsvType : uint8_t { none, integer, real, text };

/// `type` widened so that it holds the field, too.
CsvType csv_widened(CsvType type, const CsvField& field);

struct CsvShape {
  CsvDialect dialect;
  /// Of the first row: names, or made up (c0, c1 …). None: no row ends within what is there of the file.
  std::vector<std::string> columns;
  bool header = false;
  /// Of those, columns whose names in the file other columns before them have: "a_2".
  std::vector<std::string> renamed;
  /// Where the rows begin, in bytes.
  size_t begin = 0;
};

/// From the beginning of a file, and whether that is all of it. `header`: what the user knows. InputError,
/// naming `path`, for what is no such text.
CsvShape csv_shape(const std::string& path, std::string_view head, bool whole, std::optional<bool> header);

}  // namespace millrace::data
