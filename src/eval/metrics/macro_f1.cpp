#include "eval/label_counts.h"

namespace millrace::eval {

MILLRACE_METRIC(macro_f1){
    .name = "macro-f1",
    .doc = "F1, 2 · right / (told + holding): the mean over the classes, or labels",
    .outputs = {"class", "classes"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .init = []() -> std::unique_ptr<Metric> {
      return std::make_unique<LabelShareMetric<LabelShare::f1, Average::macro>>();
    },
};

}  // namespace millrace::eval
