#include <cmath>

#include "eval/column_sums.h"
#include "eval/metric.h"

namespace millrace::eval {
namespace {

/// n Σ y² − (Σ y)², rounded only at the end: n² times the variance, with nothing lost where the mean is
/// large, and 0 exactly where all y are alike.
double r2_spread(const ExactSum& sum, const ExactSum& squares, double n) {
  ExactSum spread;
  for (const double part : squares.parts()) spread.add_product(n, part);
  const std::vector<double> parts = sum.parts();
  for (const double a : parts)
    for (const double b : parts) spread.add_product(-a, b);
  return spread.value();
}

class MetricR2 : public Metric {
 public:
  void update(const Judged& judged) override {
    if (judged.rows == 0) return;
    const auto columns = static_cast<size_t>(judged.width);
    for (ColumnSums* sums : {&errors_, &sums_, &squares_}) sums->begin(judged.width);
    for (size_t i = 0; i < judged.values.size(); ++i) {
      const double value = judged.values[i], error = value - judged.number(i);
      errors_[i % columns].add_product(error, error);
      sums_[i % columns].add(value);
      squares_[i % columns].add_product(value, value);
    }
    count_ += judged.rows;
  }
  void merge(const Metric& other) override {
    const auto& more = same_metric<MetricR2>(other);
    errors_.merge(more.errors_);
    sums_.merge(more.sums_);
    squares_.merge(more.squares_);
    count_ += more.count_;
  }
  double finalize() const override {
    if (count_ < 2) return NAN;  // one row has no variance
    const auto rows = static_cast<double>(count_);
    return mean_of_columns(errors_.size(), [&](size_t column) {
      const double error = errors_[column].value(),
                   spread = r2_spread(sums_[column], squares_[column], rows) / rows;
      // Targets that are all alike: predicted, or not.
      if (spread == 0) return error == 0 ? 1.0 : 0.0;
      return 1 - error / spread;
    });
  }

 private:
  ColumnSums errors_, sums_, squares_;  // of squared errors, of targets, and of their squares
  int64_t count_ = 0;
};

}  // namespace

MILLRACE_METRIC(r2){
    .name = "r2",
    .doc = "share of the variance of the targets that the predictions explain; of several columns the mean",
    .outputs = {"number"},
    .higher_is_better = true,
    .highest = 1,
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricR2>(); },
    .needs = "two rows at least",
};

}  // namespace millrace::eval
