#include <cmath>

#include "eval/metric.h"

namespace millrace::eval {
namespace {

class BitsPerByte : public Metric {
 public:
  void add(const Judged& judged) override {
    sum_ -= judged.log_probability / M_LN2;
    count_ += judged.bytes;
  }
  double value() const override { return count_ > 0 ? sum_ / count_ : NAN; }

 private:
  double sum_ = 0, count_ = 0;
};

}  // namespace

const MetricKind bits_per_byte_kind{
    "bits-per-byte",
    "log-loss of a text model in bits for each byte of the text, comparable between tokenisers", false,
    []() -> std::unique_ptr<Metric> { return std::make_unique<BitsPerByte>(); }};

}  // namespace millrace::eval
