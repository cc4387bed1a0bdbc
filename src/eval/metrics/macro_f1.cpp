#include "eval/label_counts.h"

namespace millrace::eval {

MILLRACE_METRIC(macro_f1) =
    label_share_metric(LabelShare::f1, Average::macro, "macro-f1",
                       "F1, 2 · right / (told + holding): the mean over the classes, or labels");

}  // namespace millrace::eval
