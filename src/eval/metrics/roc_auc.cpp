#include "eval/curves.h"

namespace millrace::eval {

MILLRACE_METRIC(roc_auc) = curve_metric<BinnedScores, roc_area>(
    "roc-auc",
    "area under the ROC curve, of scores in narrow bins where more than some thousands differ (roc-auc-exact "
    "keeps all); of two classes "
    "that of the second, of more, and of labels, the mean over them, each against the rest",
    "rows of a class and rows of others");

}  // namespace millrace::eval
