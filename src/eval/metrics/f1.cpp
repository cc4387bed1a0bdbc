#include <cmath>

#include "eval/metric.h"

namespace millrace::eval {
namespace {

class MetricF1 : public Metric {
 public:
  void update(const Judged& judged) override {
    for (size_t i = 0; i < judged.values.size(); ++i) {
      const bool told = judged.outputs[i] > 0, holds = judged.values[i] > 0.5;
      right_ += told && holds;
      told_ += told;
      holding_ += holds;
    }
    count_ += judged.rows;
  }
  void merge(const Metric& other) override {
    const auto& more = same_metric<MetricF1>(other);
    right_ += more.right_;
    told_ += more.told_;
    holding_ += more.holding_;
    count_ += more.count_;
  }
  double finalize() const override {
    if (count_ == 0) return NAN;
    // 0 where no label holds and none is told.
    return told_ + holding_ ? 2 * static_cast<double>(right_) / static_cast<double>(told_ + holding_) : 0;
  }

 private:
  int64_t right_ = 0, told_ = 0, holding_ = 0, count_ = 0;
};

}  // namespace

MILLRACE_METRIC(f1){
    .name = "f1",
    .doc = "F1 of all labels together (micro): 2 · right / (told to hold + holding)",
    .outputs = {"classes"},
    .higher_is_better = true,
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricF1>(); },
};

}  // namespace millrace::eval
