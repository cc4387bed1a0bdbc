#include "eval/curves.h"

namespace millrace::eval {

MILLRACE_METRIC(pr_auc_exact) = curve_metric<KeptScores, precision_area>(
    "pr-auc-exact",
    "pr-auc of the scores as they are; keeps them all in memory, and its interval sorts them twenty times",
    "rows of the class whose scores it is about");

}  // namespace millrace::eval
