#include <cmath>

#include "eval/metric.h"

namespace millrace::eval {
namespace {

class LogLoss : public Metric {
 public:
  void add(const Judged& judged) override {
    sum_ -= judged.log_probability;
    ++count_;
  }
  double value() const override { return count_ ? sum_ / static_cast<double>(count_) : NAN; }

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

}  // namespace

const MetricKind log_loss_kind{"log-loss", "mean of −log p(true class)", false,
                               []() -> std::unique_ptr<Metric> { return std::make_unique<LogLoss>(); }};

}  // namespace millrace::eval
