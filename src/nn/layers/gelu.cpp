#include "nn/layers/layer.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(gelu){
    .name = "gelu",
    .doc = "x times the normal distribution up to x",
    .make = [](const Settings&, const Tensor&) { return gelu(); },
};

}  // namespace millrace::nn::layers
