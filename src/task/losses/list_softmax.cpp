#include "eval/ranked_rows.h"
#include "task/loss.h"

namespace millrace::task {

using eval::mean_of_terms;
using eval::RankedRows;

// Z. Cao et al., Learning to Rank: From Pairwise Approach to Listwise Approach (2007), with gains for the
// chances of being first, as S. Bruch, An Alternative Cross Entropy Loss for Learning-to-Rank (2021).
MILLRACE_LOSS(list_softmax){
    .name = "list-softmax",
    .doc =
        "cross-entropy between softmax over the scores of a query and the shares of its gains "
        "2^relevance - 1 (ListNet's top-one chances); the mean over queries with a relevant row",
    .outputs = {"rank"},
    .settings = {},
    .make = [](const Tensor& logits, const Tensor& targets, const Settings& /*settings*/,
               bool mean) -> Tensor {
      const RankedRows rows(logits, targets);
      constexpr double nowhere = -1e30;  // the score of rows that are not there
      const Tensor scores = rows.scores * rows.there + (1 - rows.there) * nowhere;
      const Tensor gains = rows.gains(), all = gains.sum({1}, true);
      const Tensor shares = gains / where(all > 0, all, 1.0);
      const Tensor sums = -(shares * log_softmax(scores, 1) * rows.there).sum({1});
      const Tensor relevant = cast(squeeze(all, 1) > 0, sums.dtype());
      const Tensor losses = mean_of_terms(sums, relevant);
      return mean ? losses.mean() : losses;
    },
};

}  // namespace millrace::task
