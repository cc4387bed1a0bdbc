#include "eval/ranked_rows.h"
#include "task/loss.h"

namespace millrace::task {

using eval::RankedRows;

// C. Burges, From RankNet to LambdaRank to LambdaMART (2010), as the bound that X. Wang et al., The
// LambdaLoss Framework (2018), give for it; LightGBM's lambdarank and XGBoost's rank:ndcg have its gradient.
MILLRACE_LOSS(lambdarank){
    .name = "lambdarank",
    .doc =
        "pair-logit where each pair weighs as much as NDCG changes when its two rows change places; the "
        "sum over the pairs of a query",
    .outputs = {"rank"},
    .settings = {{"top", "of NDCG@top; 0: of the whole ranking", int64_t{0}, 0, 1e6}},
    .make = [](const Tensor& logits, const Tensor& targets, const Settings& settings, bool mean) -> Tensor {
      const int64_t top = settings.integer("top");
      const RankedRows rows(logits, targets);
      const Tensor pairs = rows.pairs();
      const Tensor discounts = RankedRows::discounts(rows.places(rows.scores), top);
      const Tensor change = abs(RankedRows::less(rows.gains())) * abs(RankedRows::less(discounts)) /
                            reshape(rows.best(top), {pairs.dim(0), 1, 1});
      const Tensor terms = apply("softplus", std::vector<Tensor>{-RankedRows::less(rows.scores)}, {})[0];
      const Tensor losses = (pairs * change * terms).sum({1, 2});
      return mean ? losses.mean() : losses;
    },
};

}  // namespace millrace::task
