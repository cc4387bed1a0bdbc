#include <algorithm>

#include "eval/column_sums.h"
#include "eval/metric.h"

namespace millrace::eval {
namespace {

std::unique_ptr<Metric> pinball_of(int64_t percent) {
  const double q = static_cast<double>(percent) / 100;
  return column_means([q](ExactSum& sum, double value, double predicted) {
    const double missing = value - predicted;
    sum.add(std::max(q * missing, (q - 1) * missing));
  });
}

}  // namespace

MILLRACE_METRIC(pinball){
    .name = "pinball-50",
    .doc =
        "mean loss of predicting the quantile of 50 percent, the median; pinball-1 to pinball-99 of other "
        "ones; of several columns the mean",
    .outputs = {"number"},
    .lowest = 0,
    .init = [] { return pinball_of(50); },
    .init_of = pinball_of,
    .most = 99,
};

}  // namespace millrace::eval
