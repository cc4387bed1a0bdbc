// Metrics that are shares and means of what each row is by itself.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include <millrace/exact_sum.h>

#include "eval/metric.h"

namespace millrace::eval {

template <typename Right>
class ShareOfRows final : public Metric {
 public:
  explicit ShareOfRows(Right right) : is_right_(std::move(right)) {}
  void update(const Judged& judged) override {
    const size_t count = judged.labels.empty() ? judged.values.size() : judged.labels.size();
    for (size_t i = 0; i < count; ++i) right_ += is_right_(judged, i);
    count_ += static_cast<int64_t>(count);
  }
  void merge(const Metric& other) override {
    const auto& more = same_metric<ShareOfRows>(other);
    right_ += more.right_;
    count_ += more.count_;
  }
  double finalize() const override {
    return count_ ? static_cast<double>(right_) / static_cast<double>(count_) : NAN;
  }

 private:
  Right is_right_;
  int64_t right_ = 0, count_ = 0;
};

/// The share of `judged.labels`, or of `judged.values`, that are right: right(judged, i).
template <typename Right>
std::unique_ptr<Metric> share_of_rows(Right right) {
  return std::make_unique<ShareOfRows<Right>>(std::move(right));
}

template <typename Of>
class MeanOfRows final : public Metric {
 public:
  MeanOfRows(Of of, double (*shown)(double)) : of_(std::move(of)), shown_(shown) {}
  void update(const Judged& judged) override {
    for (int64_t row = 0; row < judged.rows; ++row) sum_.add(of_(judged, row));
    count_ += judged.rows;
  }
  void merge(const Metric& other) override {
    const auto& more = same_metric<MeanOfRows>(other);
    sum_.merge(more.sum_);
    count_ += more.count_;
  }
  double finalize() const override {
    const double mean = count_ ? sum_.value() / static_cast<double>(count_) : NAN;
    return shown_ ? shown_(mean) : mean;
  }

 private:
  Of of_;
  double (*shown_)(double);
  ExactSum sum_;
  int64_t count_ = 0;
};

/// The mean of of(judged, row). `shown`: what it is shown as; null: as it is.
template <typename Of>
std::unique_ptr<Metric> mean_of_rows(Of of, double (*shown)(double mean) = nullptr) {
  return std::make_unique<MeanOfRows<Of>>(std::move(of), shown);
}

/// −log p(true class); of labels the mean over them of −log p(what each is).
inline double log_loss_of(const Judged& judged, int64_t row) {
  if (!judged.labels.empty())
    return -log_probability(judged.logits(row), judged.labels[static_cast<size_t>(row)]);
  double sum = 0;
  for (int64_t i = row * judged.width; i < (row + 1) * judged.width; ++i) {
    const double logit = judged.outputs[static_cast<size_t>(i)];
    sum += std::max(logit, 0.0) - logit * judged.values[static_cast<size_t>(i)] +
           std::log1p(std::exp(-std::abs(logit)));
  }
  return sum / static_cast<double>(judged.width);
}

}  // namespace millrace::eval
