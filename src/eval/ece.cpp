// Expected calibration error of the top label (Guo et al., arXiv 1706.04599), 15 bins of equal width.
#include <algorithm>
#include <array>
#include <cmath>

#include "eval/metric.h"

namespace millrace::eval {
namespace {

class CalibrationError : public Metric {
 public:
  void add(const Judged& judged) override {
    const double confidence = judged.probabilities[static_cast<size_t>(judged.predicted)];
    // Bins are (lower, upper]; confidence 0 belongs to the first.
    const auto bin = std::clamp(static_cast<int>(std::ceil(confidence * bins)) - 1, 0, bins - 1);
    confidence_[static_cast<size_t>(bin)] += confidence;
    right_[static_cast<size_t>(bin)] += judged.predicted == judged.label;
    ++count_;
  }
  double value() const override {
    double sum = 0;
    for (size_t i = 0; i < bins; ++i) sum += std::abs(confidence_[i] - static_cast<double>(right_[i]));
    return count_ ? sum / static_cast<double>(count_) : NAN;
  }

 private:
  static constexpr int bins = 15;
  std::array<double, bins> confidence_{};
  std::array<int64_t, bins> right_{};
  int64_t count_ = 0;
};

}  // namespace

const MetricKind ece_kind{
    "ece", "expected calibration error: mean gap between confidence and accuracy in 15 bins", false,
    []() -> std::unique_ptr<Metric> { return std::make_unique<CalibrationError>(); }};

}  // namespace millrace::eval
