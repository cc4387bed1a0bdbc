#include "nn/layers/layer.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(layer_norm){
    .name = "layer-norm",
    .doc = "over the last dimension",
    .make = [](const Settings&, const Tensor& x) -> std::shared_ptr<Module> {
      return std::make_shared<LayerNorm>(features_of(x, -1));
    },
};

}  // namespace millrace::nn::layers
