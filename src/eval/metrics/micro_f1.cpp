#include "eval/label_counts.h"

namespace millrace::eval {

MILLRACE_METRIC(micro_f1) =
    label_share_metric(LabelShare::f1, Average::micro, "micro-f1",
                       "F1, 2 · right / (told + holding): of all classes, or labels, together");

}  // namespace millrace::eval
