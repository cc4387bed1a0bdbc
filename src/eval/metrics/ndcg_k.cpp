#include "eval/ranked_rows.h"
#include "eval/ranking.h"

namespace millrace::eval {
namespace {

class MetricNdcgAt : public QueryMean<MetricNdcgAt> {
 public:
  explicit MetricNdcgAt(int64_t k) : k_(k) {}
  double of(std::span<const float> scores, std::span<const double> relevance) const {
    return ndcg(scores, relevance, k_);
  }

 private:
  int64_t k_;
};

}  // namespace

MILLRACE_METRIC(ndcg_k){
    .name = "ndcg-10",
    .doc = "NDCG of the first ten rows of a query; ndcg-5, ndcg-20 … with other numbers",
    .outputs = {"rank"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .init = []() -> std::unique_ptr<Metric> { return std::make_unique<MetricNdcgAt>(10); },
    .of_rows = [](const Tensor& logits,
                  const Tensor& targets) { return RankedRows(logits, targets).ndcg(10); },
    .init_of = [](int64_t k) -> std::unique_ptr<Metric> { return std::make_unique<MetricNdcgAt>(k); },
    .needs = "a query with a relevant row",
};

}  // namespace millrace::eval
