#include "eval/curves.h"

namespace millrace::eval {

MILLRACE_METRIC(pr_auc){
    .name = "pr-auc",
    .doc =
        "average precision, the area under the precision-recall curve, of scores in narrow bins "
        "(pr-auc-exact keeps all scores); of two classes that of the second, of more, and of labels, the "
        "mean over them",
    .outputs = {"class", "classes"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .init = []() -> std::unique_ptr<Metric> {
      return std::make_unique<CurveMetric<BinnedScores, mixed_average_precision>>();
    },
    .needs = "rows of the class whose scores it is about",
};

}  // namespace millrace::eval
