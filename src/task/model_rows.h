// What a model without a recipe says, row by row: for a person, as JSON, and as columns of a table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset.h>
#include <millrace/session.h>

namespace millrace::task {

struct ModelRowOptions {
  int64_t top = 3;                  // of many numbers so many are told, the largest
  double threshold = 0;             // and of those only what is not less, in a table; 0: all
  bool all = false;                 // a table has a column for each number, too
  std::vector<std::string> labels;  // of the numbers of a row
};

/// Rows of a batch are samples of their own where all results have as many, and the model leaves their number
/// open; else what it says is one row.
class ModelRows {
 public:
  /// InputError for a `top` below 1.
  ModelRows(std::vector<SessionValue> outputs, ModelRowOptions options);

  /// How many rows there are; 0: results are told as a whole.
  int64_t rows_of(const std::vector<Array>& results) const;
  /// "cat.jpg", of several rows "batch.npy#3".
  static std::string name_of(const std::string& sample, int64_t row, int64_t rows);

  /// "means 0.1 0.2 0.3; class 281 (tabby) 12.1, …"
  std::string text(const std::vector<Array>& results, int64_t row, int64_t rows) const;
  /// An object: `input`, `name`, and each result as lists in lists.
  std::string json(const std::string& name, const std::vector<Array>& results, int64_t row,
                   int64_t rows) const;

  /// Of a table: of few numbers a column each; of many the largest, `NAME` and `NAME_value`, then `NAME_2` …;
  /// of what is no row of numbers of a known length, JSON.
  std::vector<data::Column> columns() const;
  std::vector<data::Value> values(const std::vector<Array>& results, int64_t row, int64_t rows) const;

 private:
  /// How an output stands in a table.
  struct Told {
    bool json = false;  // else a row of `width` numbers
    int64_t width = 0;
    bool largest = false, each = false;
  };
  Told told(const SessionValue& output) const;
  std::string label(int64_t i) const;
  std::vector<int64_t> largest(const Array& array, int64_t begin, int64_t count) const;
  std::string text_of(const Array& result, int64_t begin, std::span<const int64_t> dims, int64_t count) const;

  std::vector<SessionValue> outputs_;
  ModelRowOptions options_;
};

}  // namespace millrace::task
