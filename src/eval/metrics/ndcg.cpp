#include "eval/ranking.h"

namespace millrace::eval {
namespace {

class MetricNdcg : public QueryMean<MetricNdcg> {
 public:
  static double of(std::span<const float> scores, std::span<const double> relevance) {
    return ndcg(scores, relevance);
  }
};

}  // namespace

MILLRACE_METRIC(ndcg){
    .name = "ndcg",
    .doc =
        "normalised discounted cumulative gain, with gains 2^relevance - 1, of all rows of a query; the mean "
        "over "
        "queries with a relevant row",
    .outputs = {"rank"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricNdcg>(); },
    .needs = "a query with a relevant row",
};

}  // namespace millrace::eval
