#include "nn/layers/layer.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(dropout){
    .name = "dropout",
    .doc = "sets values to 0 at random in training",
    .settings = {{"PROBABILITY", "of a value to become 0", 0.0, 0, 0.999}},
    .make = [](const Settings& s, const Tensor&) -> std::shared_ptr<Module> {
      return std::make_shared<Dropout>(s.number("PROBABILITY"));
    },
};

}  // namespace millrace::nn::layers
