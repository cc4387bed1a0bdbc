#include "eval/curves.h"

namespace millrace::eval {

MILLRACE_METRIC(pr_auc) = curve_metric<BinnedScores, precision_area>(
    "pr-auc",
    "average precision, the area under the precision-recall curve, of scores in narrow bins where more "
    "than some thousands differ (pr-auc-exact keeps all); of two classes that of the second, of more, and of "
    "labels, the mean over them",
    "rows of the class whose scores it is about");

}  // namespace millrace::eval
