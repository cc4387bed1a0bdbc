#include <cmath>

#include "eval/column_sums.h"
#include "eval/metric.h"

namespace millrace::eval {
namespace {

class MetricAbsoluteError : public Metric {
 public:
  void update(const Judged& judged) override {
    if (judged.rows == 0) return;
    const auto columns = static_cast<size_t>(judged.width);
    sums_.begin(judged.width);
    for (size_t i = 0; i < judged.values.size(); ++i) {
      const double error = judged.values[i] - judged.number(i);
      sums_[i % columns].add(std::abs(error));
    }
    count_ += judged.rows;
  }
  void merge(const Metric& other) override {
    const auto& more = same_metric<MetricAbsoluteError>(other);
    sums_.merge(more.sums_);
    count_ += more.count_;
  }
  double finalize() const override {
    const auto rows = static_cast<double>(count_);
    return mean_of_columns(sums_.size(), [&](size_t column) { return sums_[column].value() / rows; });
  }

 private:
  ColumnSums sums_;  // of absolute errors
  int64_t count_ = 0;
};

}  // namespace

MILLRACE_METRIC(mae){
    .name = "mae",
    .doc = "mean absolute error, in the unit of the target; of several columns the mean",
    .outputs = {"number"},
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricAbsoluteError>(); },
};

}  // namespace millrace::eval
