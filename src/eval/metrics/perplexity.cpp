#include <cmath>

#include "eval/sums_of_rows.h"

namespace millrace::eval {
namespace {

class MetricPerplexity : public LogLossMetric<MetricPerplexity> {
 public:
  double finalize() const override { return std::exp(LogLossMetric::finalize()); }
};

}  // namespace

MILLRACE_METRIC(perplexity){
    .name = "perplexity",
    .doc = "exp(log-loss)",
    .outputs = {"class", "tokens"},
    .lowest = 1,
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricPerplexity>(); },
};

}  // namespace millrace::eval
