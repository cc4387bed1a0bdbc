#include "nn/layers/layer.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(global_avg_pool){
    .name = "global-avg-pool",
    .doc = "the mean of each channel",
    .make =
        [](const Settings&, const Tensor& x) {
          need_pictures(x);
          return global_avg_pool();
        },
};

}  // namespace millrace::nn::layers
