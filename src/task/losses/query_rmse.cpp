#include "eval/ranked_rows.h"
#include "task/loss.h"

namespace millrace::task {

using eval::mean_of_terms;
using eval::RankedRows;

// As CatBoost's QueryRMSE.
MILLRACE_LOSS(query_rmse){
    .name = "query-rmse",
    .doc =
        "the root of the mean squared error between relevances and scores, each less its mean over the "
        "query: how relevant a query's rows are on the whole need not be learnt",
    .outputs = {"rank"},
    .settings = {},
    .make = [](const Tensor& logits, const Tensor& targets, const Settings& /*settings*/,
               bool mean) -> Tensor {
      const RankedRows rows(logits, targets);
      const Tensor counts = rows.there.sum({1}, true);
      const Tensor errors = rows.relevance - rows.scores;
      const Tensor centred =
          (errors - (errors * rows.there).sum({1}, true) / maximum(counts, 1)) * rows.there;
      const Tensor squares = mean_of_terms((centred * centred).sum({1}), squeeze(counts, 1));
      // Shares of the root, whose mean over queries it is.
      constexpr double least = 1e-12;
      const Tensor losses = squares / sqrt(maximum(squares.mean(), least));
      return mean ? losses.mean() : losses;
    },
};

}  // namespace millrace::task
