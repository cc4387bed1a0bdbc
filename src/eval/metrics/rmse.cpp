#include <cmath>

#include "eval/column_sums.h"
#include "eval/metric.h"

namespace millrace::eval {

MILLRACE_METRIC(rmse){
    .name = "rmse",
    .doc =
        "root of the mean squared error, in the unit of the target; of several columns the mean of their "
        "roots",
    .outputs = {"number"},
    .lowest = 0,
    .init = [] { return column_means(add_square, [](double mean) { return std::sqrt(mean); }); },
};

}  // namespace millrace::eval
