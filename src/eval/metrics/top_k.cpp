#include "eval/sums_of_rows.h"

namespace millrace::eval {
namespace {

std::unique_ptr<Metric> top_of(int64_t k) {
  return share_of_rows([k](const Judged& judged, size_t row) {
    const std::span<const float> logits = judged.logits(static_cast<int64_t>(row));
    const int64_t label = judged.labels[row];
    const float own = logits[static_cast<size_t>(label)];
    int64_t behind = 0;  // of equals the first is the better; a NaN is behind nothing
    for (int64_t i = 0; i < judged.width; ++i) {
      const float other = logits[static_cast<size_t>(i)];
      behind += other < own || (other == own && i > label);
    }
    return judged.width - 1 - behind < k;
  });
}

}  // namespace

MILLRACE_METRIC(top_k){
    .name = "top-5",
    .doc =
        "share of rows whose true class is among the five most probable; top-3, top-10 … with other numbers",
    .outputs = {"class", "tokens"},
    .higher_is_better = true,
    .share = true,
    .lowest = 0,
    .highest = 1,
    .interval = MetricKind::wilson,
    .init = [] { return top_of(5); },
    .init_of = top_of,
};

}  // namespace millrace::eval
