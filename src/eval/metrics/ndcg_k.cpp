#include "eval/ranked_rows.h"
#include "eval/ranking.h"

namespace millrace::eval {
namespace {

std::unique_ptr<Metric> ndcg_at(int64_t k) {
  return query_mean([k](auto scores, auto relevance) { return ndcg(scores, relevance, k); });
}

}  // namespace

MILLRACE_METRIC(ndcg_k){
    .name = "ndcg-10",
    .doc = "NDCG of the first ten rows of a query; ndcg-5, ndcg-20 … with other numbers",
    .outputs = {"rank"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .init = [] { return ndcg_at(10); },
    .of_rows = [](const Tensor& logits,
                  const Tensor& targets) { return RankedRows(logits, targets).ndcg(10); },
    .init_of = ndcg_at,
    .needs = "a query with a relevant row",
};

}  // namespace millrace::eval
