// Activations.
#include "nn/layers/layer.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(relu){
    .name = "relu",
    .usage = "",
    .doc = "max(x, 0)",
    .make = [](const LayerLine&, const Tensor&) { return relu(); },
};

MILLRACE_LAYER(relu6){
    .name = "relu6",
    .usage = "",
    .doc = "x between 0 and 6",
    .make = [](const LayerLine&, const Tensor&) { return relu6(); },
};

MILLRACE_LAYER(gelu){
    .name = "gelu",
    .usage = "",
    .doc = "x times the normal distribution up to x",
    .make = [](const LayerLine&, const Tensor&) { return gelu(); },
};

MILLRACE_LAYER(silu){
    .name = "silu",
    .usage = "",
    .doc = "x · sigmoid(x)",
    .make = [](const LayerLine&, const Tensor&) { return silu(); },
};

MILLRACE_LAYER(sigmoid){
    .name = "sigmoid",
    .usage = "",
    .doc = "1 / (1 + exp(−x))",
    .make = [](const LayerLine&, const Tensor&) { return sigmoid(); },
};

MILLRACE_LAYER(tanh){
    .name = "tanh",
    .usage = "",
    .doc = "hyperbolic tangent",
    .make = [](const LayerLine&, const Tensor&) { return tanh(); },
};

}  // namespace millrace::nn::layers
