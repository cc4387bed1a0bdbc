#include <cmath>

#include "eval/metric.h"

namespace millrace::eval {
namespace {

class Accuracy : public Metric {
 public:
  void add(const Judged& judged) override {
    right_ += judged.predicted == judged.label;
    ++count_;
  }
  double value() const override {
    return count_ ? static_cast<double>(right_) / static_cast<double>(count_) : NAN;
  }

 private:
  int64_t right_ = 0, count_ = 0;
};

}  // namespace

const MetricKind accuracy_kind{"accuracy", "share of pictures whose most probable class is the true one",
                               true,
                               []() -> std::unique_ptr<Metric> { return std::make_unique<Accuracy>(); }};

}  // namespace millrace::eval
