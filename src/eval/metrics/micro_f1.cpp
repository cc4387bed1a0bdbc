#include "eval/label_counts.h"

namespace millrace::eval {

MILLRACE_METRIC(micro_f1){
    .name = "micro-f1",
    .doc = "F1, 2 · right / (told + holding): of all classes, or labels, together",
    .outputs = {"class", "classes"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .init = []() -> std::unique_ptr<Metric> {
      return std::make_unique<LabelShareMetric<LabelShare::f1, Average::micro>>();
    },
};

}  // namespace millrace::eval
