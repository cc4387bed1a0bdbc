// Columns of a table to numbers that a model takes: a matrix of floats and one of ids. What this needs to
// know (means, vocabularies) is learnt on training data and saved with the run, so that evaluation and
// serving encode the same way.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/array.h>
#include <millrace/dataset.h>

#include "data/encode/table_layout.h"

namespace millrace::data {

struct TableOptions {
  /// Columns that are not used. Arrays, bytes and the like never are.
  std::vector<std::string> leave_out;
  /// Columns that stay although their numbers are those of the rows.
  std::vector<std::string> named;
  /// Columns that are categories: of numbers (codes), or of texts that would be taken for something else.
  std::vector<std::string> categories;
  /// Columns that are numbers, or dates, whatever they look like: values that are none are missing. Whole
  /// numbers that are dates are microseconds since 1970, as Parquet and Arrow have them, or 20241231, if all
  /// are.
  std::vector<std::string> numbers, dates;
  /// Numbers are also told by where they stand among so many ranges, each of which has as many rows as the
  /// others (piecewise linear encoding, Gorishniy et al., arXiv 2203.05556); 0: only by themselves.
  int64_t bins = 0;
  /// Categories that are rarer are "other".
  int64_t least_count = 1;
  /// Texts are dates, or yes and no, where all are; columns that say nothing are left out: without a value,
  /// texts that nearly all differ (less than half of the rows have one that comes least_count times: only
  /// whether there is one may be told), and numbers that count the rows. `categories`, `numbers`, `dates`
  /// decide before.
  bool decide = false;
  /// > 0: no vocabulary; ids are 1 + murmur3_32(text) mod (hash_ids - 1), missing ones 0.
  int64_t hash_ids = 0;
  int threads = 0;
  /// Called by many threads.
  std::function<void(int64_t done, int64_t total)> progress;
};

/// Deciding what columns are, and which categories are rare, as inputs of kind table do: values that come
/// less than 3 times, in tables of 100 rows or more.
TableOptions usual_table(const Dataset& dataset);

/// Texts of categories that stand for a missing value ("NA", "None", "-", "missing" …), as they are written.
std::span<const std::string_view> missing_texts();

struct TableState;  // table_state.h

/// A copy is cheap; all members may be called from many threads at once.
class TableEncoder {
 public:
  using Dense = TableDense;
  using Category = TableCategory;

  /// Goes once through the data. InputError when a column that the options name is not there or of no use, or
  /// nothing is left.
  static TableEncoder learn(const Dataset& dataset, const TableOptions& options);
  /// As json() wrote it; InputError when it is none.
  static TableEncoder parse(std::string_view json);
  std::string json() const;

  /// What became of each column, in their order; empty after parse().
  const std::vector<TableColumn>& decisions() const;
  const std::vector<Dense>& dense() const;
  const std::vector<Category>& categories() const;
  /// The columns that it looks at, by name; and those of them that were texts in training.
  std::vector<std::string> columns() const;
  std::vector<std::string> text_columns() const;

  /// Samples `first` to `first` + `count` - 1 of a data set that has the same columns by name, as they stand
  /// there, for models whose graph does the rest (table_graph.h), into the caller's memory: numbers f64
  /// [count, raw_numbers(dense())] with NaN where there is none, columns in the order of dense() without what
  /// is derived (TableDense::Reads says what they are), and ids [count, categories().size()]; null where
  /// there are no such columns. Texts where training had numbers must be numbers as they are written.
  /// InputError when a column is missing or of another kind, InternalError when there are no such samples.
  /// `bad`: what becomes of texts that cannot be read as what training had there (a number, a date): an
  /// InputError that names the sample, or a missing value.
  enum class Bad { refused, missing };
  void read_raw(const Dataset& dataset, int64_t first, int64_t count, double* numbers, int64_t* ids,
                Bad bad = Bad::refused) const;
  /// The columns of a data set that have such texts. Reads all samples where columns of texts become numbers.
  std::vector<TableBadCells> bad_cells(const Dataset& dataset) const;
  /// The columns of categories that say nothing in a data set, by its first ten thousand samples.
  std::vector<TableUnknown> unknown_categories(const Dataset& dataset) const;

 private:
  explicit TableEncoder(std::shared_ptr<const TableState> state) : state_(std::move(state)) {}
  std::shared_ptr<const TableState> state_;
};

}  // namespace millrace::data
