#include <algorithm>

#include "eval/column_sums.h"
#include "eval/metric.h"

namespace millrace::eval {
namespace {

class MetricPinball : public ColumnMeans<MetricPinball> {
 public:
  explicit MetricPinball(int64_t percent) : q_(static_cast<double>(percent) / 100) {}
  void add(ExactSum& sum, double value, double predicted) const {
    const double missing = value - predicted;
    sum.add(std::max(q_ * missing, (q_ - 1) * missing));
  }

 private:
  double q_;
};

}  // namespace

MILLRACE_METRIC(pinball){
    .name = "pinball-50",
    .doc =
        "mean loss of predicting the quantile of 50 percent, the median; pinball-1 to pinball-99 of other "
        "ones; "
        "of several columns the mean",
    .outputs = {"number"},
    .lowest = 0,
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricPinball>(50); },
    .init_of = [](int64_t percent) -> std::unique_ptr<Metric> {
      return std::make_unique<MetricPinball>(percent);
    },
    .most = 99,
};

}  // namespace millrace::eval
