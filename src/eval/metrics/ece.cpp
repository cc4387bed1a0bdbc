// Expected calibration error of the top label (Guo et al., arXiv 1706.04599), 15 bins of equal width; of
// several labels of each one's probability to hold.
#include <array>
#include <cmath>

#include <millrace/exact_sum.h>

#include "eval/metric.h"

namespace millrace::eval {
namespace {

class MetricCalibrationError : public Metric {
 public:
  void update(const Judged& judged) override {
    for (int64_t row = 0; row < static_cast<int64_t>(judged.labels.size()); ++row) {
      const std::span<const float> logits = judged.logits(row);
      const int64_t predicted = most_probable(logits);
      const double largest = logits[static_cast<size_t>(predicted)];
      double sum = 0;
      for (const float logit : logits) sum += std::exp(logit - largest);
      add(1 / sum, predicted == judged.labels[static_cast<size_t>(row)]);
    }
    for (size_t i = 0; i < judged.values.size(); ++i)
      add(1 / (1 + std::exp(-static_cast<double>(judged.outputs[i]))), judged.values[i] > 0.5);
  }
  void merge(const Metric& other) override {
    const auto& more = same_metric<MetricCalibrationError>(other);
    for (size_t i = 0; i < bins; ++i) {
      confidence_[i].merge(more.confidence_[i]);
      right_[i] += more.right_[i];
    }
    count_ += more.count_;
  }
  double finalize() const override {
    double sum = 0;
    for (size_t i = 0; i < bins; ++i)
      sum += std::abs(confidence_[i].value() - static_cast<double>(right_[i]));
    return count_ ? sum / static_cast<double>(count_) : NAN;
  }

 private:
  static constexpr int bins = 15;

  void add(double confidence, bool right) {
    const size_t bin = bin_of(confidence);
    confidence_[bin].add(confidence);
    right_[bin] += right;
    ++count_;
  }
  /// Bins are (lower, upper]: 1/3, which 5/15 is rounded to as well, belongs to the fifth. A NaN goes into
  /// the first, whose sum it makes NaN.
  static size_t bin_of(double confidence) {
    int bin = 0;
    while (bin < bins - 1 && confidence > static_cast<double>(bin + 1) / bins) ++bin;
    return static_cast<size_t>(bin);
  }

  std::array<ExactSum, bins> confidence_;
  std::array<int64_t, bins> right_{};
  int64_t count_ = 0;
};

}  // namespace

MILLRACE_METRIC(ece){
    .name = "ece",
    .doc =
        "expected calibration error: mean gap between confidence and accuracy in 15 bins; of labels between "
        "how probable they are and how often they hold",
    .outputs = {"class", "classes", "tokens"},
    .lowest = 0,
    .highest = 1,
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricCalibrationError>(); },
};

}  // namespace millrace::eval
