#include <cmath>

#include "eval/label_counts.h"

namespace millrace::eval {
namespace {

class MetricMatthews : public Metric {
 public:
  void update(const Judged& judged) override { counts_.update(judged); }
  void merge(const Metric& other) override { counts_.merge(same_metric<MetricMatthews>(other).counts_); }
  double finalize() const override {
    if (counts_.rows == 0) return NAN;
    const auto rows = static_cast<double>(counts_.rows);
    double right = 0, both = 0, told = 0, holding = 0;
    for (size_t i = 0; i < counts_.right.size(); ++i) {
      const auto said = static_cast<double>(counts_.told[i]), is = static_cast<double>(counts_.holding[i]);
      right += static_cast<double>(counts_.right[i]);
      both += said * is;
      told += said * said;
      holding += is * is;
    }
    const double spread = (rows * rows - told) * (rows * rows - holding);
    return spread == 0 ? 0 : (right * rows - both) / std::sqrt(spread);
  }

 private:
  LabelCounts counts_;
};

}  // namespace

MILLRACE_METRIC(matthews){
    .name = "matthews",
    .doc = "Matthews' correlation of told and true classes; 0 where all rows are told, or are, of one",
    .outputs = {"class"},
    .higher_is_better = true,
    .lowest = -1,
    .highest = 1,
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricMatthews>(); },
};

}  // namespace millrace::eval
