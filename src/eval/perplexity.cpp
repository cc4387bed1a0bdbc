#include <cmath>

#include "eval/metric.h"

namespace millrace::eval {
namespace {

class Perplexity : public Metric {
 public:
  void add(const Judged& judged) override {
    sum_ -= judged.log_probability;
    ++count_;
  }
  double value() const override { return count_ > 0 ? std::exp(sum_ / count_) : NAN; }

 private:
  double sum_ = 0, count_ = 0;
};

}  // namespace

const MetricKind perplexity_kind{"perplexity", "exp(log-loss)", false,
                                 []() -> std::unique_ptr<Metric> { return std::make_unique<Perplexity>(); }};

}  // namespace millrace::eval
