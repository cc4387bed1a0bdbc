#include <cmath>

#include <millrace/exact_sum.h>

#include "eval/metric.h"

namespace millrace::eval {
namespace {

class MetricBrier : public Metric {
 public:
  void update(const Judged& judged) override {
    for (int64_t row = 0; row < judged.rows; ++row)
      sum_.add(judged.labels.empty() ? of_labels(judged, row) : of_classes(judged, row));
    count_ += judged.rows;
  }
  void merge(const Metric& other) override {
    const auto& more = same_metric<MetricBrier>(other);
    sum_.merge(more.sum_);
    count_ += more.count_;
  }
  double finalize() const override { return count_ ? sum_.value() / static_cast<double>(count_) : NAN; }

 private:
  double of_classes(const Judged& judged, int64_t row) {
    softmax(judged.logits(row), probabilities_);
    probabilities_[static_cast<size_t>(judged.labels[static_cast<size_t>(row)])] -= 1;
    if (judged.width == 2) return probabilities_[1] * probabilities_[1];
    double sum = 0;
    for (const double error : probabilities_) sum += error * error;
    return sum;
  }
  static double of_labels(const Judged& judged, int64_t row) {
    double sum = 0;
    for (int64_t i = row * judged.width; i < (row + 1) * judged.width; ++i) {
      const auto at = static_cast<size_t>(i);
      const double error = 1 / (1 + std::exp(-static_cast<double>(judged.outputs[at]))) - judged.values[at];
      sum += error * error;
    }
    return sum / static_cast<double>(judged.width);
  }

  ExactSum sum_;
  int64_t count_ = 0;
  std::vector<double> probabilities_;
};

}  // namespace

MILLRACE_METRIC(brier){
    .name = "brier",
    .doc =
        "Brier score, the squared error of probabilities: of two classes that of the second's, of more the "
        "sum "
        "over them, of labels the mean",
    .outputs = {"class", "classes"},
    .lowest = 0,
    .highest = 2,
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricBrier>(); },
};

}  // namespace millrace::eval
