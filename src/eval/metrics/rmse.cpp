#include <cmath>

#include "eval/column_sums.h"
#include "eval/metric.h"

namespace millrace::eval {
namespace {

class MetricRootSquaredError : public ColumnMeans<MetricRootSquaredError> {
 public:
  static void add(ExactSum& sum, double value, double predicted) {
    const double error = value - predicted;
    sum.add_product(error, error);
  }
  static double of_mean(double mean) { return std::sqrt(mean); }
};

}  // namespace

MILLRACE_METRIC(rmse){
    .name = "rmse",
    .doc =
        "root of the mean squared error, in the unit of the target; of several columns the mean of their "
        "roots",
    .outputs = {"number"},
    .lowest = 0,
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricRootSquaredError>(); },
};

}  // namespace millrace::eval
