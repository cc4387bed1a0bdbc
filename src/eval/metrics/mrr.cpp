#include "eval/ranking.h"

namespace millrace::eval {

MILLRACE_METRIC(mrr){
    .name = "mrr",
    .doc = "mean reciprocal rank: 1 / place of the first relevant row, over queries with one",
    .outputs = {"rank"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .init = [] { return query_mean(reciprocal_rank); },
    .needs = "a query with a relevant row",
};

}  // namespace millrace::eval
