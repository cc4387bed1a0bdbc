#include "eval/ranking.h"

namespace millrace::eval {
namespace {

class MetricMeanAveragePrecision : public QueryMean<MetricMeanAveragePrecision> {
 public:
  static double of(std::span<const float> scores, std::span<const double> relevance) {
    return query_average_precision(scores, relevance);
  }
};

}  // namespace

MILLRACE_METRIC(map){
    .name = "map",
    .doc =
        "mean average precision: of each query the mean precision at its relevant rows (relevance above 0)",
    .outputs = {"rank"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricMeanAveragePrecision>(); },
    .needs = "a query with a relevant row",
};

}  // namespace millrace::eval
