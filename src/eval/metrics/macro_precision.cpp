#include "eval/label_counts.h"

namespace millrace::eval {

MILLRACE_METRIC(macro_precision) = label_share_metric(
    LabelShare::precision, Average::macro, "macro-precision",
    "of those told to be of a class, the share that is: the mean over the classes, or labels");

}  // namespace millrace::eval
