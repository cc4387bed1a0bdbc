#include <cmath>

#include "eval/metric.h"

namespace millrace::eval {
namespace {

class Top5 : public Metric {
 public:
  void add(const Judged& judged) override {
    const double own = judged.probabilities[static_cast<size_t>(judged.label)];
    int better = 0;
    for (size_t i = 0; i < judged.probabilities.size(); ++i)
      better += judged.probabilities[i] > own ||
                (judged.probabilities[i] == own && static_cast<int64_t>(i) < judged.label);
    right_ += better < 5;
    ++count_;
  }
  double value() const override {
    return count_ ? static_cast<double>(right_) / static_cast<double>(count_) : NAN;
  }

 private:
  int64_t right_ = 0, count_ = 0;
};

}  // namespace

const MetricKind top_5_kind{"top-5", "share of pictures whose true class is among the five most probable",
                            true, []() -> std::unique_ptr<Metric> { return std::make_unique<Top5>(); }};

}  // namespace millrace::eval
