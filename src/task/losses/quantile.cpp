#include "task/loss.h"

namespace millrace::task {

MILLRACE_LOSS(quantile){
    .name = "quantile",
    .doc =
        "q times the error where the prediction is too small, 1 - q times where it is too large; its best "
        "prediction is the quantile q, with 0.5 the median",
    .outputs = {"number"},
    .settings = {{"q", "which quantile is predicted", 0.5, 1e-6, 1 - 1e-6}},
    .make = [](const Tensor& logits, const Tensor& targets, const Settings& settings, bool mean) -> Tensor {
      const double q = settings.number("q");
      const Tensor missing = targets - cast(logits, f32);
      const Tensor losses = maximum(missing * q, missing * (q - 1));
      return mean ? losses.mean() : losses.mean({1});
    },
};

}  // namespace millrace::task
