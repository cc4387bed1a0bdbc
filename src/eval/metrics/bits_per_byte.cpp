#include <cmath>

#include <millrace/exact_sum.h>

#include "eval/metric.h"

namespace millrace::eval {
namespace {

class MetricBitsPerByte : public Metric {
 public:
  void update(const Judged& judged) override {
    for (int64_t row = 0; row < judged.rows; ++row) {
      bits_.add(-log_probability(judged.logits(row), judged.labels[static_cast<size_t>(row)]) / M_LN2);
      bytes_.add(judged.bytes);
    }
  }
  void merge(const Metric& other) override {
    const auto& more = same_metric<MetricBitsPerByte>(other);
    bits_.merge(more.bits_);
    bytes_.merge(more.bytes_);
  }
  double finalize() const override {
    const double bytes = bytes_.value();
    return bytes > 0 ? bits_.value() / bytes : NAN;
  }

 private:
  ExactSum bits_, bytes_;
};

}  // namespace

MILLRACE_METRIC(bits_per_byte){
    .name = "bits-per-byte",
    .doc = "log-loss of a text model in bits for each byte of the text, comparable between tokenisers",
    .outputs = {"tokens"},
    .lowest = 0,
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricBitsPerByte>(); },
};

}  // namespace millrace::eval
