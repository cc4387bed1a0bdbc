#include <algorithm>
#include <cmath>
#include <limits>

#include "eval/column_sums.h"
#include "eval/metric.h"

namespace millrace::eval {
namespace {

class MetricPercentageError : public ColumnMeans<MetricPercentageError> {
 public:
  /// A target of 0 is taken for the smallest difference of numbers around 1, as scikit-learn does: one such
  /// row with any error at all shows.
  static void add(ExactSum& sum, double value, double predicted) {
    sum.add(std::abs(value - predicted) / std::max(std::abs(value), std::numeric_limits<double>::epsilon()));
  }
};

}  // namespace

MILLRACE_METRIC(mape){
    .name = "mape",
    .doc = "mean absolute error as a share of the target; of several columns the mean",
    .outputs = {"number"},
    .share = true,
    .lowest = 0,
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricPercentageError>(); },
};

}  // namespace millrace::eval
