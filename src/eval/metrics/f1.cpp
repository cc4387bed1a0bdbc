#include "eval/label_counts.h"

namespace millrace::eval {

MILLRACE_METRIC(f1) = label_share_metric(
    LabelShare::f1, Average::usual, "f1",
    "F1, 2 · right / (told + holding); of two classes that of the second, of more the mean over the classes, "
    "of labels all together");

}  // namespace millrace::eval
