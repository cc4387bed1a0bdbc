#include <cmath>

#include "eval/label_counts.h"

namespace millrace::eval {
namespace {

class MetricKappa : public Metric {
 public:
  void update(const Judged& judged) override { counts_.update(judged); }
  void merge(const Metric& other) override { counts_.merge(same_metric<MetricKappa>(other).counts_); }
  double finalize() const override {
    const auto rows = static_cast<double>(counts_.rows);
    double right = 0, chance = 0;
    for (size_t i = 0; i < counts_.right.size(); ++i) {
      right += static_cast<double>(counts_.right[i]);
      chance += static_cast<double>(counts_.told[i]) * static_cast<double>(counts_.holding[i]) / rows;
    }
    return chance == rows ? NAN : (right - chance) / (rows - chance);
  }

 private:
  LabelCounts counts_;
};

}  // namespace

MILLRACE_METRIC(kappa){
    .name = "kappa",
    .doc = "Cohen's kappa: how far accuracy is above chance, of how far it could be",
    .outputs = {"class"},
    .higher_is_better = true,
    .lowest = -1,
    .highest = 1,
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricKappa>(); },
    .needs = "more than one class among targets and predictions",
};

}  // namespace millrace::eval
