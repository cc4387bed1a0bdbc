#include <cmath>

#include "base/exact_sum.h"
#include "eval/metric.h"

namespace millrace::eval {
namespace {

class MetricLogLoss : public Metric {
 public:
  void update(const Judged& judged) override {
    for (int64_t row = 0; row < judged.rows; ++row)
      sum_.add(-log_probability(judged.logits(row), judged.labels[static_cast<size_t>(row)]));
    count_ += judged.rows;
  }
  void merge(const Metric& other) override {
    const auto& more = same_metric<MetricLogLoss>(other);
    sum_.merge(more.sum_);
    count_ += more.count_;
  }
  double finalize() const override { return count_ ? sum_.value() / static_cast<double>(count_) : NAN; }

 private:
  ExactSum sum_;
  int64_t count_ = 0;
};

}  // namespace

MILLRACE_METRIC(log_loss){
    .name = "log-loss",
    .doc = "mean of −log p(true class)",
    .outputs = {"class", "tokens"},
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricLogLoss>(); },
};

}  // namespace millrace::eval
