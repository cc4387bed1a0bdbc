#include <cmath>

#include "eval/metric.h"

namespace millrace::eval {
namespace {

class MetricTop5 : public Metric {
 public:
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
      right_ += judged.width - 1 - behind < 5;
    }
    count_ += judged.rows;
  }
  void merge(const Metric& other) override {
    const auto& more = same_metric<MetricTop5>(other);
    right_ += more.right_;
    count_ += more.count_;
  }
  double finalize() const override {
    return count_ ? static_cast<double>(right_) / static_cast<double>(count_) : NAN;
  }

 private:
  int64_t right_ = 0, count_ = 0;
};

}  // namespace

MILLRACE_METRIC(top_5){
    .name = "top-5",
    .doc = "share of rows whose true class is among the five most probable",
    .outputs = {"class", "tokens"},
    .higher_is_better = true,
    .share = true,
    .interval = MetricKind::wilson,
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricTop5>(); },
};

}  // namespace millrace::eval
