#include "eval/label_counts.h"

namespace millrace::eval {

MILLRACE_METRIC(recall){
    .name = "recall",
    .doc =
        "of those of a class, the share that is told; of two classes that of the second, of more the mean "
        "over the classes, of labels all together",
    .outputs = {"class", "classes"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .init = []() -> std::unique_ptr<Metric> {
      return std::make_unique<LabelShareMetric<LabelShare::recall, Average::usual>>();
    },
};

}  // namespace millrace::eval
