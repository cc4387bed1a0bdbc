#include "base/format.h"
#include "nn/layers/layer.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(conv){
    .name = "conv",
    .doc = "2-D convolution",
    .settings = {channels_setting(),
                 kernel_setting(),
                 stride_setting(),
                 {"padding", "zeros on each side; -1: half the kernel, rounded down", int64_t{-1}, -1,
                  most_size},
                 {"dilation", "from one row or column of the kernel to the next", int64_t{1}, 1, most_size},
                 {"groups", "of channels, each of which sees itself alone", int64_t{1}, 1, most_width},
                 bias_setting()},
    .make = [](const Settings& s, const Tensor& x) -> std::shared_ptr<Module> {
      need_pictures(x);
      const int64_t kernel = s.integer("KERNEL"), in = features_of(x, 1), groups = s.integer("groups"),
                    padding = s.integer("padding");
      if (in % groups != 0) fail<InputError>("{} channels cannot form {} groups", in, groups);
      return std::make_shared<Conv2d>(in, s.integer("CHANNELS"), kernel,
                                      ConvOptions{.stride = s.integer("stride"),
                                                  .padding = padding < 0 ? kernel / 2 : padding,
                                                  .dilation = s.integer("dilation"),
                                                  .groups = groups,
                                                  .bias = s.integer("bias") != 0});
    },
};

}  // namespace millrace::nn::layers
