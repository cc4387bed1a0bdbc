#include <cmath>

#include "eval/metric.h"

namespace millrace::eval {
namespace {

/// Its interval counts rows, not labels: those of one row depend on each other.
class MetricLabelAccuracy : public Metric {
 public:
  void update(const Judged& judged) override {
    for (size_t i = 0; i < judged.values.size(); ++i)
      right_ += (judged.outputs[i] > 0) == (judged.values[i] > 0.5);
    count_ += static_cast<int64_t>(judged.values.size());
  }
  void merge(const Metric& other) override {
    const auto& more = same_metric<MetricLabelAccuracy>(other);
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

MILLRACE_METRIC(label_accuracy){
    .name = "label-accuracy",
    .doc = "share of labels that are told rightly to hold or not",
    .outputs = {"classes"},
    .higher_is_better = true,
    .share = true,
    .interval = MetricKind::wilson,
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricLabelAccuracy>(); },
};

}  // namespace millrace::eval
