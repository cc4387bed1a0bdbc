#include "nn/layers/layer.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(flatten){
    .name = "flatten",
    .doc = "[batch, …] to [batch, features]",
    .make = [](const Settings&, const Tensor&) { return flatten(); },
};

}  // namespace millrace::nn::layers
