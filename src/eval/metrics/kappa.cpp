#include <cmath>

#include "eval/label_counts.h"

namespace millrace::eval {
namespace {

double cohen_kappa(const LabelCounts& counts) {
  const auto rows = static_cast<double>(counts.rows);
  double right = 0, chance = 0;
  for (size_t i = 0; i < counts.right.size(); ++i) {
    right += static_cast<double>(counts.right[i]);
    chance += static_cast<double>(counts.told[i]) * static_cast<double>(counts.holding[i]) / rows;
  }
  return chance == rows ? NAN : (right - chance) / (rows - chance);
}

}  // namespace

MILLRACE_METRIC(kappa){
    .name = "kappa",
    .doc = "Cohen's kappa: how far accuracy is above chance, of how far it could be",
    .outputs = {"class"},
    .higher_is_better = true,
    .lowest = -1,
    .highest = 1,
    .init = [] { return label_counts_metric(cohen_kappa); },
    .needs = "more than one class among targets and predictions",
};

}  // namespace millrace::eval
