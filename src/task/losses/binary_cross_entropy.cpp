#include "task/loss.h"

namespace millrace::task {
namespace {

/// As PyTorch's BCEWithLogitsLoss(pos_weight): the term of a label that holds weighs its weight.
Tensor weighted_binary_cross_entropy(const Tensor& logits, const Tensor& targets, const Tensor& weights,
                                     const Settings& /*settings*/, bool mean) {
  const Tensor wide = cast(logits, f32);
  const Tensor losses = apply("binary_cross_entropy_with_logits", std::vector<Tensor>{wide, targets},
                              {{"reduction", "none"}})[0] *
                        (targets * (weights - 1) + 1);
  return mean ? losses.mean() : losses.mean({1});
}

}  // namespace

MILLRACE_LOSS(binary_cross_entropy){
    .name = "binary-cross-entropy",
    .doc =
        "of each label the negative log of the probability (sigmoid) that it holds, or does not; their mean",
    .outputs = {"classes"},
    .settings = {},
    .make = [](const Tensor& logits, const Tensor& targets, const Settings& /*settings*/,
               bool mean) -> Tensor {
      const Tensor wide = cast(logits, f32);
      if (mean) return bce_with_logits(wide, targets);
      return apply("binary_cross_entropy_with_logits", std::vector<Tensor>{wide, targets},
                   {{"reduction", "none"}})[0]
          .mean({1});
    },
    .weighted = weighted_binary_cross_entropy,
};

}  // namespace millrace::task
