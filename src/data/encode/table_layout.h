// What becomes of the columns of a table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::data {

/// A column of the float matrix, or the flag behind it of what was missing there (1 or 0), where that
/// occurred in training.
struct TableDense {
  std::string column;
  bool flag = false;
  double mean = 0,
         deviation = 1;  // of training; what is missing is the mean. Deviation 0: values stay as they are
  std::vector<std::string> ordinal;  // not empty: of texts
  bool operator==(const TableDense&) const = default;
};
/// A column of the id matrix. Id 0 is "other": what training did not have, or too rarely; with hashes, what
/// is missing.
struct TableCategory {
  std::string column;
  int64_t ids = 0;  // 0 … ids - 1
  /// Of ids 1, 2, …: the most frequent first, of equal ones in alphabetical order. What is missing is the
  /// text "", and has an id of its own where training had it. Empty with hashes.
  std::vector<std::string> vocabulary;
  bool numbers = false;  // training had numbers there (codes)
  bool operator==(const TableCategory&) const = default;
};

}  // namespace millrace::data
