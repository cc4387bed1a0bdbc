#include "eval/label_counts.h"

namespace millrace::eval {

MILLRACE_METRIC(precision){
    .name = "precision",
    .doc =
        "of those told to be of a class, the share that is; of two classes that of the second, of more the "
        "mean over the classes, of labels all together",
    .outputs = {"class", "classes"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .init = []() -> std::unique_ptr<Metric> {
      return std::make_unique<LabelShareMetric<LabelShare::precision, Average::usual>>();
    },
};

}  // namespace millrace::eval
