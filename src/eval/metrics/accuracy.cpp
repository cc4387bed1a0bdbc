#include "eval/sums_of_rows.h"

namespace millrace::eval {
namespace {

class MetricAccuracy : public ShareMetric<MetricAccuracy> {
 public:
  void update(const Judged& judged) override {
    for (int64_t row = 0; row < judged.rows; ++row)
      right_ += judged.told(row) == judged.labels[static_cast<size_t>(row)];
    count_ += judged.rows;
  }
};

}  // namespace

MILLRACE_METRIC(accuracy){
    .name = "accuracy",
    .doc = "share of rows whose most probable class is the true one",
    .outputs = {"class", "tokens", "duel"},
    .higher_is_better = true,
    .share = true,
    .lowest = 0,
    .highest = 1,
    .interval = MetricKind::wilson,
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricAccuracy>(); },
    .of_rows = [](const Tensor& logits,
                  const Tensor& targets) { return cast(equal(argmax(logits, -1), targets), f32); },
};

}  // namespace millrace::eval
