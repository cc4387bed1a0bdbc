#include "eval/column_sums.h"
#include "eval/metric.h"

namespace millrace::eval {

MILLRACE_METRIC(mse){
    .name = "mse",
    .doc = "mean squared error, in the square of the target's unit; of several columns the mean",
    .outputs = {"number"},
    .lowest = 0,
    .init = [] { return column_means(add_square); },
};

}  // namespace millrace::eval
