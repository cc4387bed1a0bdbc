// States that several metrics share: counts and exact sums over rows. Own: the metric, which merges with its
// own kind only.
#pragma once

#include <algorithm>
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

/// The mean of −log p(true class); of labels that of −log p(what each is), the mean over them.
template <typename Own>
class LogLossMetric : public Metric {
 public:
  void update(const Judged& judged) override {
    for (int64_t row = 0; row < judged.rows; ++row)
      sum_.add(judged.labels.empty()
                   ? label_loss(judged, row)
                   : -log_probability(judged.logits(row), judged.labels[static_cast<size_t>(row)]));
    count_ += judged.rows;
  }
  void merge(const Metric& other) override {
    const LogLossMetric& more = same_metric<Own>(other);
    sum_.merge(more.sum_);
    count_ += more.count_;
  }
  double finalize() const override { return count_ ? sum_.value() / static_cast<double>(count_) : NAN; }

 private:
  static double label_loss(const Judged& judged, int64_t row) {
    double sum = 0;
    for (int64_t i = row * judged.width; i < (row + 1) * judged.width; ++i) {
      const double logit = judged.outputs[static_cast<size_t>(i)];
      sum += std::max(logit, 0.0) - logit * judged.values[static_cast<size_t>(i)] +
             std::log1p(std::exp(-std::abs(logit)));
    }
    return sum / static_cast<double>(judged.width);
  }

  ExactSum sum_;
  int64_t count_ = 0;
};

}  // namespace millrace::eval
