#include "eval/curves.h"

namespace millrace::eval {

MILLRACE_METRIC(roc_auc_exact) = curve_metric<KeptScores, roc_area>(
    "roc-auc-exact",
    "roc-auc of the scores as they are; keeps them all in memory, and its interval sorts them twenty times",
    "rows of a class and rows of others");

}  // namespace millrace::eval
