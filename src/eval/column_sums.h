// A sum for each column of a batch, for metrics of numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <millrace/exact_sum.h>

#include "base/format.h"
#include "eval/metric.h"

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

/// The mean over rows of what `add` says of each; of several columns their mean.
template <typename Add>
class ColumnMeans final : public Metric {
 public:
  ColumnMeans(Add add, double (*shown)(double)) : add_(std::move(add)), shown_(shown) {}
  void update(const Judged& judged) override {
    if (judged.rows == 0) return;
    const auto columns = static_cast<size_t>(judged.width);
    sums_.begin(judged.width);
    for (size_t i = 0; i < judged.values.size(); ++i)
      add_(sums_[i % columns], judged.values[i], judged.number(i));
    count_ += judged.rows;
  }
  void merge(const Metric& other) override {
    const auto& more = same_metric<ColumnMeans>(other);
    sums_.merge(more.sums_);
    count_ += more.count_;
  }
  double finalize() const override {
    const auto rows = static_cast<double>(count_);
    return mean_of_columns(sums_.size(), [&](size_t column) {
      const double mean = sums_[column].value() / rows;
      return shown_ ? shown_(mean) : mean;
    });
  }

 private:
  Add add_;
  double (*shown_)(double);
  ColumnSums sums_;
  int64_t count_ = 0;
};

/// The metric that is the mean of what add(sum, target, prediction) adds for each row. `shown`: what a
/// column's mean is shown as; null: as it is.
template <typename Add>
std::unique_ptr<Metric> column_means(Add add, double (*shown)(double mean) = nullptr) {
  return std::make_unique<ColumnMeans<Add>>(std::move(add), shown);
}

/// (target − prediction)², without rounding.
inline constexpr auto add_square = [](ExactSum& sum, double value, double predicted) {
  const double error = value - predicted;
  sum.add_product(error, error);
};

}  // namespace millrace::eval
