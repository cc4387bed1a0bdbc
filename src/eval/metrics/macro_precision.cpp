#include "eval/label_counts.h"

namespace millrace::eval {

MILLRACE_METRIC(macro_precision){
    .name = "macro-precision",
    .doc = "of those told to be of a class, the share that is: the mean over the classes, or labels",
    .outputs = {"class", "classes"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .init = []() -> std::unique_ptr<Metric> {
      return std::make_unique<LabelShareMetric<LabelShare::precision, Average::macro>>();
    },
};

}  // namespace millrace::eval
