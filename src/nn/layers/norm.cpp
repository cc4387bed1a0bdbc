// Layers that normalise.
#include "nn/layers/layer.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(batch_norm){
    .name = "batch-norm",
    .usage = "[momentum=0.1] [eps=1e-5]",
    .doc = "each channel over the batch",
    .options = {"momentum", "eps"},
    .make = [](const LayerLine& line, const Tensor& x) -> std::shared_ptr<Module> {
      return std::make_shared<BatchNorm>(
          features_of(line, x, 1),
          BatchNormOptions{.epsilon = line.option("eps", 1e-5), .momentum = line.option("momentum", 0.1)});
    },
};

MILLRACE_LAYER(layer_norm){
    .name = "layer-norm",
    .usage = "",
    .doc = "over the last dimension",
    .make = [](const LayerLine& line, const Tensor& x) -> std::shared_ptr<Module> {
      return std::make_shared<LayerNorm>(features_of(line, x, -1));
    },
};

MILLRACE_LAYER(rms_norm){
    .name = "rms-norm",
    .usage = "",
    .doc = "by the root of the mean square over the last dimension",
    .make = [](const LayerLine& line, const Tensor& x) -> std::shared_ptr<Module> {
      return std::make_shared<RMSNorm>(features_of(line, x, -1));
    },
};

}  // namespace millrace::nn::layers
