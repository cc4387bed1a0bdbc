#include "nn/layers/layer.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(batch_norm){
    .name = "batch-norm",
    .doc = "each channel over the batch",
    .settings = {{"momentum", "share of the running mean and variance that a step replaces", 0.1, 0, 1},
                 {"eps", "keeps the division by the deviation from zero", 1e-5, 1e-12, 1}},
    .make = [](const Settings& s, const Tensor& x) -> std::shared_ptr<Module> {
      return std::make_shared<BatchNorm>(
          features_of(x, 1), BatchNormOptions{.epsilon = s.number("eps"), .momentum = s.number("momentum")});
    },
};

}  // namespace millrace::nn::layers
