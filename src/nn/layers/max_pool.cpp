#include "nn/layers/layer.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(max_pool){
    .name = "max-pool",
    .doc = "the maxima of windows",
    .settings = pool_settings(),
    .make =
        [](const Settings& s, const Tensor& x) {
          need_pictures(x);
          return max_pool2d(s.integer("KERNEL"), s.integer("stride"), s.integer("padding"));
        },
};

}  // namespace millrace::nn::layers
