#include <cmath>

#include "eval/label_counts.h"

namespace millrace::eval {
namespace {

double matthews_correlation(const LabelCounts& counts) {
  if (counts.rows == 0) return NAN;
  const auto rows = static_cast<double>(counts.rows);
  double right = 0, both = 0, told = 0, holding = 0;
  for (size_t i = 0; i < counts.right.size(); ++i) {
    const auto said = static_cast<double>(counts.told[i]), is = static_cast<double>(counts.holding[i]);
    right += static_cast<double>(counts.right[i]);
    both += said * is;
    told += said * said;
    holding += is * is;
  }
  const double spread = (rows * rows - told) * (rows * rows - holding);
  return spread == 0 ? 0 : (right * rows - both) / std::sqrt(spread);
}

}  // namespace

MILLRACE_METRIC(matthews){
    .name = "matthews",
    .doc = "Matthews' correlation of told and true classes; 0 where all rows are told, or are, of one",
    .outputs = {"class"},
    .higher_is_better = true,
    .lowest = -1,
    .highest = 1,
    .init = [] { return label_counts_metric(matthews_correlation); },
};

}  // namespace millrace::eval
