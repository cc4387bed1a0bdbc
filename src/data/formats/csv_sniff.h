// What kind of delimited text a file is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/formats/csv_scan.h"

namespace millrace::data {

struct CsvShape {
  CsvDialect dialect;
  /// Of the first row: names, or made up (c0, c1 …). None: no row ends within what is there of the file.
  std::vector<std::string> columns;
  bool header = false;
  /// Of those, columns whose names in the file other columns before them have: "a_2".
  std::vector<std::string> renamed;
  /// The file is one line, of words that differ: either names without rows, or a row without names.
  bool only_words = false;
  /// Where the rows begin, in bytes.
  size_t begin = 0;
};

/// What quotes are where tabs delimit, in which texts are often written as they are.
enum class TabQuotes { found, quotes, letters };

/// From the beginning of a file, and whether that is all of it. `header`, `missing`, `quotes`: what is known.
/// InputError, naming `path`, for what is no such text.
CsvShape csv_shape(const std::string& path, std::string_view head, bool whole, std::optional<bool> header,
                   std::span<const std::string> missing = {}, TabQuotes quotes = TabQuotes::found);

}  // namespace millrace::data
