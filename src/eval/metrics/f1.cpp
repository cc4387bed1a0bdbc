#include "eval/label_counts.h"

namespace millrace::eval {

MILLRACE_METRIC(f1){
    .name = "f1",
    .doc =
        "F1, 2 · right / (told + holding); of two classes that of the second, of more the mean over the "
        "classes, of labels all together",
    .outputs = {"class", "classes"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .init = []() -> std::unique_ptr<Metric> {
      return std::make_unique<LabelShareMetric<LabelShare::f1, Average::usual>>();
    },
};

}  // namespace millrace::eval
