#include <cmath>

#include "base/moments.h"
#include "eval/column_sums.h"
#include "eval/metric.h"

namespace millrace::eval {
namespace {

class MetricR2 : public Metric {
 public:
  void update(const Judged& judged) override {
    if (judged.rows == 0) return;
    const auto columns = static_cast<size_t>(judged.width);
    errors_.begin(judged.width);
    targets_.resize(columns);
    for (size_t i = 0; i < judged.values.size(); ++i) {
      const double value = judged.values[i], error = value - judged.number(i);
      errors_[i % columns].add_product(error, error);
      targets_[i % columns].add(value);
    }
    count_ += judged.rows;
  }
  void merge(const Metric& other) override {
    const auto& more = same_metric<MetricR2>(other);
    if (more.targets_.empty()) return;
    errors_.merge(more.errors_);
    targets_.resize(more.targets_.size());
    for (size_t i = 0; i < targets_.size(); ++i) targets_[i].merge(more.targets_[i]);
    count_ += more.count_;
  }
  double finalize() const override {
    if (count_ < 2) return NAN;  // one row has no variance
    return mean_of_columns(errors_.size(), [&](size_t column) {
      const double error = errors_[column].value(), spread = targets_[column].spread();
      // Targets that are all alike: predicted, or not.
      if (spread == 0) return error == 0 ? 1.0 : 0.0;
      return 1 - error / spread;
    });
  }

 private:
  ColumnSums errors_;  // squared
  std::vector<Moments> targets_;
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
