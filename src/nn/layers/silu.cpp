#include "nn/layers/layer.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(silu){
    .name = "silu",
    .doc = "x · sigmoid(x)",
    .make = [](const Settings&, const Tensor&) { return silu(); },
};

}  // namespace millrace::nn::layers
