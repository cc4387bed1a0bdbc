#include "eval/ranked_rows.h"
#include "task/loss.h"

namespace millrace::task {

using eval::mean_of_terms;
using eval::RankedRows;

// Bradley and Terry (1952) for pairs of rows; as CatBoost's PairLogit, or RankNet (Burges et al., 2005).
MILLRACE_LOSS(pair_logit){
    .name = "pair-logit",
    .doc =
        "of two rows of a query the more relevant one is to have the greater score: the mean over such "
        "pairs of log(1 + exp(-difference)), as of duels that the better one wins with probability "
        "1 / (1 + exp(-difference)) (Bradley and Terry; RankNet)",
    .outputs = {"rank"},
    .settings = {},
    .make = [](const Tensor& logits, const Tensor& targets, const Settings& /*settings*/,
               bool mean) -> Tensor {
      const RankedRows rows(logits, targets);
      const Tensor pairs = rows.pairs();
      const Tensor terms = apply("softplus", std::vector<Tensor>{-RankedRows::less(rows.scores)}, {})[0];
      const Tensor losses = mean_of_terms((pairs * terms).sum({1, 2}), pairs.sum({1, 2}));
      return mean ? losses.mean() : losses;
    },
};

}  // namespace millrace::task
