#include "eval/label_counts.h"

namespace millrace::eval {

MILLRACE_METRIC(micro_recall){
    .name = "micro-recall",
    .doc = "of those of a class, the share that is told: of all classes, or labels, together",
    .outputs = {"class", "classes"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .init = []() -> std::unique_ptr<Metric> {
      return std::make_unique<LabelShareMetric<LabelShare::recall, Average::micro>>();
    },
};

}  // namespace millrace::eval
