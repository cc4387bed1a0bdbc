#include "eval/curves.h"

namespace millrace::eval {

MILLRACE_METRIC(roc_auc){
    .name = "roc-auc",
    .doc =
        "area under the ROC curve, of scores in narrow bins (roc-auc-exact keeps all scores); of two classes "
        "that of the second, of more, and of labels, the mean over them, each against the rest",
    .outputs = {"class", "classes"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .init = []() -> std::unique_ptr<Metric> {
      return std::make_unique<CurveMetric<BinnedScores, area_under_roc>>();
    },
    .needs = "rows of a class and rows of others",
};

}  // namespace millrace::eval
