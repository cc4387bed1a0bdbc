#include "eval/label_counts.h"

namespace millrace::eval {

MILLRACE_METRIC(micro_recall) =
    label_share_metric(LabelShare::recall, Average::micro, "micro-recall",
                       "of those of a class, the share that is told: of all classes, or labels, together");

}  // namespace millrace::eval
