#include "eval/label_counts.h"

namespace millrace::eval {

MILLRACE_METRIC(micro_precision) = label_share_metric(
    LabelShare::precision, Average::micro, "micro-precision",
    "of those told to be of a class, the share that is: of all classes, or labels, together");

}  // namespace millrace::eval
