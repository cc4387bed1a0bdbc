#include "eval/label_counts.h"

namespace millrace::eval {

MILLRACE_METRIC(recall) = label_share_metric(
    LabelShare::recall, Average::usual, "recall",
    "of those of a class, the share that is told; of two classes that of the second, of more the mean over "
    "the classes, of labels all together");

}  // namespace millrace::eval
