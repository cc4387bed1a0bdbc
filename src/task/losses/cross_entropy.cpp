#include "task/loss.h"

namespace millrace::task {

MILLRACE_LOSS(cross_entropy){
    .name = "cross-entropy",
    .doc = "the negative log of the probability (softmax) of the right class or token",
    .outputs = {"class", "tokens"},
    .settings = {{"label_smoothing", "share of the target given to all classes alike", 0.0, 0, 0.999}},
    .make = [](const Tensor& logits, const Tensor& targets, const Settings& settings, bool mean) -> Tensor {
      const double smoothing = settings.number("label_smoothing");
      if (mean) return cross_entropy(logits, targets, smoothing);
      return apply("cross_entropy", std::vector<Tensor>{logits, targets},
                   {{"label_smoothing", smoothing}, {"reduction", "none"}})[0];
    },
};

}  // namespace millrace::task
