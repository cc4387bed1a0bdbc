#include "nn/layers/layer.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(avg_pool){
    .name = "avg-pool",
    .doc = "the means of windows",
    .settings = pool_settings(),
    .make =
        [](const Settings& s, const Tensor& x) {
          need_pictures(x);
          return avg_pool2d(s.integer("KERNEL"), s.integer("stride"), s.integer("padding"));
        },
};

}  // namespace millrace::nn::layers
