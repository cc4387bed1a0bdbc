#include "task/loss.h"

namespace millrace::task {

MILLRACE_LOSS(mse){
    .name = "mse",
    .doc = "the squared error; its best prediction is the mean",
    .outputs = {"number"},
    .settings = {},
    .make = [](const Tensor& logits, const Tensor& targets, const Settings& /*settings*/,
               bool mean) -> Tensor {
      const Tensor wide = cast(logits, f32);
      if (mean) return ::millrace::mse_loss(wide, targets);
      return apply("mse_loss", std::vector<Tensor>{wide, targets}, {{"reduction", "none"}})[0].mean({1});
    },
};

}  // namespace millrace::task
