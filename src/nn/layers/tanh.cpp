#include "nn/layers/layer.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(tanh){
    .name = "tanh",
    .doc = "hyperbolic tangent",
    .make = [](const Settings&, const Tensor&) { return tanh(); },
};

}  // namespace millrace::nn::layers
