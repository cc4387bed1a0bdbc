#include <cmath>

#include "eval/column_sums.h"
#include "eval/metric.h"

namespace millrace::eval {

MILLRACE_METRIC(mae){
    .name = "mae",
    .doc = "mean absolute error, in the unit of the target; of several columns the mean",
    .outputs = {"number"},
    .lowest = 0,
    .init =
        [] {
          return column_means(
              [](ExactSum& sum, double value, double predicted) { sum.add(std::abs(value - predicted)); });
        },
    .of_rows = [](const Tensor& numbers,
                  const Tensor& targets) { return cast(abs(numbers - targets).mean({1}), f32); },
};

}  // namespace millrace::eval
