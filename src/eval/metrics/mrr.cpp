#include "eval/ranking.h"

namespace millrace::eval {
namespace {

class MetricReciprocalRank : public QueryMean<MetricReciprocalRank> {
 public:
  static double of(std::span<const float> scores, std::span<const double> relevance) {
    return reciprocal_rank(scores, relevance);
  }
};

}  // namespace

MILLRACE_METRIC(mrr){
    .name = "mrr",
    .doc = "mean reciprocal rank: 1 / place of the first relevant row, over queries with one",
    .outputs = {"rank"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricReciprocalRank>(); },
    .needs = "a query with a relevant row",
};

}  // namespace millrace::eval
