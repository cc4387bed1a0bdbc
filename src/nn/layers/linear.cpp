#include "base/format.h"
#include "nn/layers/layer.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(linear){
    .name = "linear",
    .doc = "each output is a weighted sum of all features",
    .settings = {{"FEATURES", "outputs", int64_t{1}, 1, most_width}, bias_setting()},
    .make = [](const Settings& s, const Tensor& x) -> std::shared_ptr<Module> {
      if (x.rank() > 2) fail<InputError>("the input is {}; put \"flatten\" before it", x.type().str());
      return std::make_shared<Linear>(features_of(x, -1), s.integer("FEATURES"), s.integer("bias") != 0);
    },
};

}  // namespace millrace::nn::layers
