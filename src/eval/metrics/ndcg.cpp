#include "eval/ranking.h"

namespace millrace::eval {

MILLRACE_METRIC(ndcg){
    .name = "ndcg",
    .doc =
        "normalised discounted cumulative gain, with gains 2^relevance - 1, of all rows of a query; the mean "
        "over queries with a relevant row",
    .outputs = {"rank"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .init = [] { return query_mean([](auto scores, auto relevance) { return ndcg(scores, relevance); }); },
    .needs = "a query with a relevant row",
};

}  // namespace millrace::eval
