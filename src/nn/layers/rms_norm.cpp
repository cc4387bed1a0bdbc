#include "nn/layers/layer.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(rms_norm){
    .name = "rms-norm",
    .doc = "by the root of the mean square over the last dimension",
    .make = [](const Settings&, const Tensor& x) -> std::shared_ptr<Module> {
      return std::make_shared<RMSNorm>(features_of(x, -1));
    },
};

}  // namespace millrace::nn::layers
