#include <cmath>

#include "eval/metric.h"

namespace millrace::eval {
namespace {

class MetricAccuracy : public Metric {
 public:
  void update(const Judged& judged) override {
    for (int64_t row = 0; row < judged.rows; ++row)
      right_ += most_probable(judged.logits(row)) == judged.labels[static_cast<size_t>(row)];
    count_ += judged.rows;
  }
  void merge(const Metric& other) override {
    const auto& more = same_metric<MetricAccuracy>(other);
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

MILLRACE_METRIC(accuracy){
    .name = "accuracy",
    .doc = "share of rows whose most probable class is the true one",
    .outputs = {"class", "tokens"},
    .higher_is_better = true,
    .share = true,
    .interval = MetricKind::wilson,
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricAccuracy>(); },
};

}  // namespace millrace::eval
