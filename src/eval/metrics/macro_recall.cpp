#include "eval/label_counts.h"

namespace millrace::eval {

MILLRACE_METRIC(macro_recall) =
    label_share_metric(LabelShare::recall, Average::macro, "macro-recall",
                       "of those of a class, the share that is told: the mean over the classes, or labels");

}  // namespace millrace::eval
