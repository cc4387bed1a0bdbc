#include "eval/sums_of_rows.h"

namespace millrace::eval {

MILLRACE_METRIC(accuracy){
    .name = "accuracy",
    .doc = "share of rows whose most probable class is the true one",
    .outputs = {"class", "tokens", "duel"},
    .higher_is_better = true,
    .share = true,
    .lowest = 0,
    .highest = 1,
    .interval = MetricKind::wilson,
    .init =
        [] {
          return share_of_rows([](const Judged& judged, size_t i) {
            return judged.told(static_cast<int64_t>(i)) == judged.labels[i];
          });
        },
    .of_rows = [](const Tensor& logits,
                  const Tensor& targets) { return cast(equal(argmax(logits, -1), targets), f32); },
};

}  // namespace millrace::eval
