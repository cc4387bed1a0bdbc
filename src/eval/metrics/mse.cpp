#include "eval/column_sums.h"
#include "eval/metric.h"

namespace millrace::eval {
namespace {

class MetricSquaredError : public ColumnMeans<MetricSquaredError> {
 public:
  static void add(ExactSum& sum, double value, double predicted) {
    const double error = value - predicted;
    sum.add_product(error, error);
  }
};

}  // namespace

MILLRACE_METRIC(mse){
    .name = "mse",
    .doc = "mean squared error, in the square of the target's unit; of several columns the mean",
    .outputs = {"number"},
    .lowest = 0,
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricSquaredError>(); },
};

}  // namespace millrace::eval
