#include "eval/curves.h"

namespace millrace::eval {

MILLRACE_METRIC(roc_auc_exact){
    .name = "roc-auc-exact",
    .doc =
        "roc-auc of the scores as they are; keeps them all in memory, and its interval sorts them twenty "
        "times",
    .outputs = {"class", "classes"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .init = []() -> std::unique_ptr<Metric> {
      return std::make_unique<CurveMetric<KeptScores, area_under_roc>>();
    },
    .needs = "rows of a class and rows of others",
};

}  // namespace millrace::eval
