#include "nn/layers/layer.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(relu){
    .name = "relu",
    .doc = "max(x, 0)",
    .make = [](const Settings&, const Tensor&) { return relu(); },
};

}  // namespace millrace::nn::layers
