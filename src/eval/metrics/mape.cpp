#include <algorithm>
#include <cmath>
#include <limits>

#include "eval/column_sums.h"
#include "eval/metric.h"

namespace millrace::eval {
namespace {

/// A target of 0 is taken for the smallest difference of numbers around 1, as scikit-learn does: one such row
/// with any error at all shows.
constexpr auto add_share_of_error = [](ExactSum& sum, double value, double predicted) {
  sum.add(std::abs(value - predicted) / std::max(std::abs(value), std::numeric_limits<double>::epsilon()));
};

}  // namespace

MILLRACE_METRIC(mape){
    .name = "mape",
    .doc = "mean absolute error as a share of the target; of several columns the mean",
    .outputs = {"number"},
    .share = true,
    .lowest = 0,
    .init = [] { return column_means(add_share_of_error); },
};

}  // namespace millrace::eval
