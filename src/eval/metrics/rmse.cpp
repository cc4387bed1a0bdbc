#include <cmath>

#include "eval/column_sums.h"
#include "eval/metric.h"

namespace millrace::eval {
namespace {

class MetricRootSquaredError : public Metric {
 public:
  void update(const Judged& judged) override {
    if (judged.rows == 0) return;
    const auto columns = static_cast<size_t>(judged.width);
    sums_.begin(judged.width);
    for (size_t i = 0; i < judged.values.size(); ++i) {
      const double error = judged.values[i] - judged.number(i);
      sums_[i % columns].add_product(error, error);
    }
    count_ += judged.rows;
  }
  void merge(const Metric& other) override {
    const auto& more = same_metric<MetricRootSquaredError>(other);
    sums_.merge(more.sums_);
    count_ += more.count_;
  }
  double finalize() const override {
    const auto rows = static_cast<double>(count_);
    return mean_of_columns(sums_.size(),
                           [&](size_t column) { return std::sqrt(sums_[column].value() / rows); });
  }

 private:
  ColumnSums sums_;  // of squared errors
  int64_t count_ = 0;
};

}  // namespace

MILLRACE_METRIC(rmse){
    .name = "rmse",
    .doc =
        "root of the mean squared error, in the unit of the target; of several columns the mean of their "
        "roots",
    .outputs = {"number"},
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricRootSquaredError>(); },
};

}  // namespace millrace::eval
