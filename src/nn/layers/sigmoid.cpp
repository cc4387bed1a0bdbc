#include "nn/layers/layer.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(sigmoid){
    .name = "sigmoid",
    .doc = "1 / (1 + exp(−x))",
    .make = [](const Settings&, const Tensor&) { return sigmoid(); },
};

}  // namespace millrace::nn::layers
