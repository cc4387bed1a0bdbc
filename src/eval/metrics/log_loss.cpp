#include "eval/sums_of_rows.h"

namespace millrace::eval {
namespace {

class MetricLogLoss : public LogLossMetric<MetricLogLoss> {};

}  // namespace

MILLRACE_METRIC(log_loss){
    .name = "log-loss",
    .doc = "mean of −log p(true class); of labels the mean over them of −log p(what each is)",
    .outputs = {"class", "classes", "tokens", "duel"},
    .lowest = 0,
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricLogLoss>(); },
};

}  // namespace millrace::eval
