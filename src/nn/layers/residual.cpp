#include "nn/layers/layer.h"
#include "nn/models/models.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(residual){
    .name = "residual",
    .doc = "two convolutions with batch norm, added to their input, then relu",
    .settings = {channels_setting(), kernel_setting(), stride_setting()},
    .make = [](const Settings& s, const Tensor& x) -> std::shared_ptr<Module> {
      need_pictures(x);
      const int64_t in = features_of(x, 1), out = s.integer("CHANNELS"), kernel = s.integer("KERNEL"),
                    stride = s.integer("stride");
      auto body = std::make_shared<Sequential>();
      models::append_conv_norm(*body, in, out, kernel, {.stride = stride, .padding = kernel / 2}, relu());
      models::append_conv_norm(*body, out, out, kernel, {.padding = kernel / 2}, nullptr);
      auto whole = std::make_shared<Sequential>();
      whole->append(std::make_shared<Residual>(body, models::shortcut_of(in, out, stride)));
      whole->append(relu());
      return whole;
    },
};

}  // namespace millrace::nn::layers
