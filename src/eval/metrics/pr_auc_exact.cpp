#include "eval/curves.h"

namespace millrace::eval {

MILLRACE_METRIC(pr_auc_exact){
    .name = "pr-auc-exact",
    .doc =
        "pr-auc of the scores as they are; keeps them all in memory, and its interval sorts them twenty "
        "times",
    .outputs = {"class", "classes"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .init = []() -> std::unique_ptr<Metric> {
      return std::make_unique<CurveMetric<KeptScores, average_precision>>();
    },
    .needs = "rows of the class whose scores it is about",
};

}  // namespace millrace::eval
