#include "eval/label_counts.h"

namespace millrace::eval {

MILLRACE_METRIC(precision) = label_share_metric(
    LabelShare::precision, Average::usual, "precision",
    "of those told to be of a class, the share that is; of two classes that of the second, of more the mean "
    "over the classes, of labels all together");

}  // namespace millrace::eval
