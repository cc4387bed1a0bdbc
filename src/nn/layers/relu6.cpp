#include "nn/layers/layer.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(relu6){
    .name = "relu6",
    .doc = "x between 0 and 6",
    .make = [](const Settings&, const Tensor&) { return relu6(); },
};

}  // namespace millrace::nn::layers
