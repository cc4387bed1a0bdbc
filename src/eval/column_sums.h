// A sum for each column of a batch, for metrics of numbers.
#pragma once

#include <cmath>
#include <vector>

#include <millrace/exact_sum.h>

#include "base/format.h"

namespace millrace::eval {

class ColumnSums {
 public:
  /// Before the first number: the sums of that many columns, which all batches have.
  void begin(int64_t columns) {
    if (sums_.empty()) sums_.resize(static_cast<size_t>(columns));
    MILLRACE_CHECK(static_cast<int64_t>(sums_.size()) == columns, "{} columns after {}", columns,
                   sums_.size());
  }
  void merge(const ColumnSums& other) {
    if (other.sums_.empty()) return;
    begin(static_cast<int64_t>(other.sums_.size()));
    for (size_t i = 0; i < sums_.size(); ++i) sums_[i].merge(other.sums_[i]);
  }
  size_t size() const { return sums_.size(); }
  ExactSum& operator[](size_t column) { return sums_[column]; }
  const ExactSum& operator[](size_t column) const { return sums_[column]; }

 private:
  std::vector<ExactSum> sums_;
};

/// The mean over `columns` of what `value` says of each; NaN without any.
template <typename Value>
double mean_of_columns(size_t columns, const Value& value) {
  double sum = 0;
  for (size_t i = 0; i < columns; ++i) sum += value(i);
  return columns ? sum / static_cast<double>(columns) : NAN;
}

}  // namespace millrace::eval
