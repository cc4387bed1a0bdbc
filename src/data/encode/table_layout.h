// What becomes of the columns of a table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::data {

/// A column of the float matrix: numbers of a column of the table, or what is made of those (derived), which
/// stands behind them.
struct TableDense {
  /// What the numbers are: as they stand; 0 and 1 for no and yes; days since 1970-01-01.
  enum class Reads { number, boolean, date };
  std::string column;
  bool flag = false;  // derived: 1 where the number is missing, else 0; only where that occurred in training
  /// Of training. The model is given (x - mean) / deviation; what is missing, not finite or larger than any
  /// float is the mean.
  double mean = 0, deviation = 1;
  Reads reads = Reads::number;
  /// > 0: derived of a date: the sine, or cosine, of where it stands in a period of so many days; 0 where it
  /// is missing.
  double period = 0;
  bool cosine = false;
  /// low < high: derived of a number: how much of this range lies below it, from 0 to 1; 0 where it is
  /// missing.
  double low = 0, high = 0;
  bool decimal_comma = false;  // numbers: written as 1.234,5
  bool day_first = false;      // dates: 31/12/2024
  /// Dates that training had as whole numbers: microseconds since 1970, or their digits, 20241231.
  enum class Whole { none, microseconds, digits } whole = Whole::none;
  bool operator==(const TableDense&) const = default;

  bool ranged() const { return low < high; }
  bool derived() const { return flag || period > 0 || ranged(); }
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
  /// The share of the rows of training whose id is to be 0 as if the value were unknown, where too few are
  /// so by themselves: else nobody would have learnt what to make of a value that training did not have.
  double hidden = 0;
  bool operator==(const TableCategory&) const = default;
};

/// What became of a column of the table.
struct TableColumn {
  std::string column;
  std::string taken_as;  // "number", "yes or no", "date", "category"; "left out"
  std::string why;       // "" where that is as usual
  int64_t missing = 0;   // rows without a value
  int64_t values = 0;    // of categories: with an id of their own
  int64_t rare = 0;      // of categories: rows whose values share the id of all others
  int64_t bad = 0;       // of those missing: values that are there and cannot be read
};

/// Texts of a column that cannot be read as what training had there.
struct TableBadCells {
  std::string column;
  std::string kind;             // "dates": what the column holds
  int64_t bad = 0, values = 0;  // cells; of so many that are not missing
  std::string text;             // the first of them
  int64_t sample = -1;          // where that stands
};

/// A column of categories of which nearly all are none that training had.
struct TableUnknown {
  std::string column;
  int64_t unknown = 0, rows = 0;  // of so many that were looked at
  std::string text;               // the first of them
  int64_t sample = -1;            // where that stands
};

}  // namespace millrace::data
