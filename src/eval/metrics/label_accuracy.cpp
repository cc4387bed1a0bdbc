#include "eval/sums_of_rows.h"

namespace millrace::eval {

MILLRACE_METRIC(label_accuracy){
    .name = "label-accuracy",
    .doc = "share of labels that are told rightly to hold or not",
    .outputs = {"classes"},
    .higher_is_better = true,
    .share = true,
    .lowest = 0,
    .highest = 1,
    .interval = MetricKind::wilson,  // counts rows, not labels: those of one row depend on each other
    .init =
        [] {
          return share_of_rows([](const Judged& judged, size_t i) {
            return judged.told_to_hold(i) == (judged.values[i] > 0.5);
          });
        },
    .of_rows =
        [](const Tensor& logits, const Tensor& targets) {
          const Tensor told = cast(logits > 0, f32), holds = cast(targets > 0.5, f32);
          return cast(equal(told, holds), f32).mean({1});
        },
};

}  // namespace millrace::eval
