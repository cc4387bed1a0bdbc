#include "eval/label_counts.h"

namespace millrace::eval {

MILLRACE_METRIC(micro_precision){
    .name = "micro-precision",
    .doc = "of those told to be of a class, the share that is: of all classes, or labels, together",
    .outputs = {"class", "classes"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .init = []() -> std::unique_ptr<Metric> {
      return std::make_unique<LabelShareMetric<LabelShare::precision, Average::micro>>();
    },
};

}  // namespace millrace::eval
