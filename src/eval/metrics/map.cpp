#include "eval/ranking.h"

namespace millrace::eval {

MILLRACE_METRIC(map){
    .name = "map",
    .doc =
        "mean average precision: of each query the mean precision at its relevant rows (relevance above 0)",
    .outputs = {"rank"},
    .higher_is_better = true,
    .lowest = 0,
    .highest = 1,
    .init = [] { return query_mean(query_average_precision); },
    .needs = "a query with a relevant row",
};

}  // namespace millrace::eval
