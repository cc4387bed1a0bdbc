#include "eval/sums_of_rows.h"

namespace millrace::eval {
namespace {

class MetricTopK : public ShareMetric<MetricTopK> {
 public:
  explicit MetricTopK(int64_t k) : k_(k) {}
  void update(const Judged& judged) override {
    for (int64_t row = 0; row < judged.rows; ++row) {
      const std::span<const float> logits = judged.logits(row);
      const int64_t label = judged.labels[static_cast<size_t>(row)];
      const float own = logits[static_cast<size_t>(label)];
      int64_t behind = 0;  // of equals the first is the better; a NaN is behind nothing
      for (int64_t i = 0; i < judged.width; ++i) {
        const float other = logits[static_cast<size_t>(i)];
        behind += other < own || (other == own && i > label);
      }
      right_ += judged.width - 1 - behind < k_;
    }
    count_ += judged.rows;
  }

 private:
  int64_t k_;
};

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
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricTopK>(5); },
    .init_of = [](int64_t k) -> std::unique_ptr<Metric> { return std::make_unique<MetricTopK>(k); },
};

}  // namespace millrace::eval
