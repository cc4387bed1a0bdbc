#include "task/loss.h"

namespace millrace::task {
namespace {

/// As PyTorch's CrossEntropyLoss(weight): each class's term weighs its weight, also that of smoothing, and
/// the mean is divided by the weights of the rows' classes.
Tensor weighted_cross_entropy(const Tensor& logits, const Tensor& targets, const Tensor& weights,
                              const Settings& settings, bool mean) {
  const int64_t classes = weights.dim(0).size();
  const double smoothing = settings.number("label_smoothing");
  const Tensor one = one_hot(targets, classes);
  const Tensor wanted = (one * (1 - smoothing) + smoothing / static_cast<double>(classes)) * weights;
  const Tensor losses =
      apply("cross_entropy_soft", std::vector<Tensor>{cast(logits, f32), wanted}, {{"reduction", "none"}})[0];
  // A batch of nothing but classes of weight 0 has no loss.
  constexpr double least = 1e-12;
  const Tensor all = maximum((one * weights).sum({-1}).mean(), least);
  return mean ? losses.mean() / all : losses / all;
}

}  // namespace

MILLRACE_LOSS(cross_entropy){
    .name = "cross-entropy",
    .doc = "the negative log of the probability (softmax) of the right class or token",
    .outputs = {"class", "tokens", "duel"},
    .settings = {{"label_smoothing", "share of the target given to all classes alike", 0.0, 0, 0.999}},
    .make = [](const Tensor& logits, const Tensor& targets, const Settings& settings, bool mean) -> Tensor {
      const double smoothing = settings.number("label_smoothing");
      if (mean) return cross_entropy(logits, targets, smoothing);
      return apply("cross_entropy", std::vector<Tensor>{logits, targets},
                   {{"label_smoothing", smoothing}, {"reduction", "none"}})[0];
    },
    .weighted = weighted_cross_entropy,
};

}  // namespace millrace::task
