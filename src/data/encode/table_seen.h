// What was seen of a column of a table, and what is made of it.
#pragma once

#include <limits>

#include <millrace/dataset.h>

#include "base/text_hash.h"
#include "data/encode/table_encoder.h"
#include "data/encode/table_state.h"

namespace millrace::data {

/// Sums of a column, in the order of the data whatever the number of threads.
struct TableSeen {
  int64_t numbers = 0, missing = 0;
  int64_t dates = 0;  // of whole numbers: those that could be one, 20241231
  double mean = 0, squares = 0;
  TextMap<int64_t> times;  // of texts; not of missing ones
  /// Of numbers: do they grow from row to row; the first and the last; the least and the most; is any of them
  /// not whole (of days: a time of day)?
  bool growing = true, hours = false;
  double first = 0, last = -std::numeric_limits<double>::infinity();
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();

  void number(double value);
  /// The same number so often, in no order of rows.
  void numbers_of(double value, int64_t rows);
  /// That of the rows behind.
  void add(TableSeen later);
};

/// How a column is used, before its values were seen.
struct TableUse {
  size_t column = 0;
  enum class Role { number, category, text } role = Role::number;  // text: it is decided later what it is
  bool forced_number = false, forced_date = false;
  bool digits = false;  // of a forced date: all its whole numbers are 20241231
  bool only = false;    // there is no other, so that it stays
  bool named = false;   // by who wants it, numbers of rows or not
};

/// Adds what the column becomes to `state`, and why to its decisions.
void add_column(const Dataset& dataset, const TableUse& use, TableSeen seen, const TableOptions& options,
                TableState& state);

}  // namespace millrace::data
