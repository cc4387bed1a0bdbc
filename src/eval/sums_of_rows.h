// States that several metrics share: counts and exact sums over rows. Own: the metric, which merges with its
// own kind only.
#pragma once

#include <cmath>
#include <cstdint>

#include <millrace/exact_sum.h>

#include "eval/metric.h"

namespace millrace::eval {

/// The share of what counts that is right; update() adds to both.
template <typename Own>
class ShareMetric : public Metric {
 public:
  void merge(const Metric& other) override {
    const ShareMetric& more = same_metric<Own>(other);
    right_ += more.right_;
    count_ += more.count_;
  }
  double finalize() const override {
    return count_ ? static_cast<double>(right_) / static_cast<double>(count_) : NAN;
  }

 protected:
  int64_t right_ = 0, count_ = 0;
};

/// The mean of −log p(true class).
template <typename Own>
class LogLossMetric : public Metric {
 public:
  void update(const Judged& judged) override {
    for (int64_t row = 0; row < judged.rows; ++row)
      sum_.add(-log_probability(judged.logits(row), judged.labels[static_cast<size_t>(row)]));
    count_ += judged.rows;
  }
  void merge(const Metric& other) override {
    const LogLossMetric& more = same_metric<Own>(other);
    sum_.merge(more.sum_);
    count_ += more.count_;
  }
  double finalize() const override { return count_ ? sum_.value() / static_cast<double>(count_) : NAN; }

 private:
  ExactSum sum_;
  int64_t count_ = 0;
};

}  // namespace millrace::eval
