// Layers of pictures: convolutions, a residual block of them, pooling.
#include "base/format.h"
#include "nn/layers/layer.h"
#include "nn/models/models.h"

namespace millrace::nn::layers {

MILLRACE_LAYER(conv){
    .name = "conv",
    .usage = "CHANNELS KERNEL [stride=1] [padding=KERNEL/2] [dilation=1] [groups=1] [bias=1]",
    .doc = "2-D convolution",
    .most_numbers = 2,
    .options = {"stride", "padding", "dilation", "groups", "bias"},
    .make = [](const LayerLine& line, const Tensor& x) -> std::shared_ptr<Module> {
      need_pictures(line, x);
      const int64_t kernel = line.whole(1, "kernel"), in = features_of(line, x, 1),
                    groups = line.whole_option("groups", 1);
      if (groups < 1 || in % groups != 0)
        line.error(fmt::format("{} channels cannot form {} groups", in, groups));
      return std::make_shared<Conv2d>(in, line.whole(0, "number of channels"), kernel,
                                      ConvOptions{.stride = line.whole_option("stride", 1),
                                                  .padding = line.whole_option("padding", kernel / 2),
                                                  .dilation = line.whole_option("dilation", 1),
                                                  .groups = groups,
                                                  .bias = line.option("bias", 1) != 0});
    },
};

MILLRACE_LAYER(residual){
    .name = "residual",
    .usage = "CHANNELS KERNEL [stride=1]",
    .doc = "two convolutions with batch norm, added to their input, then relu",
    .most_numbers = 2,
    .options = {"stride"},
    .make = [](const LayerLine& line, const Tensor& x) -> std::shared_ptr<Module> {
      need_pictures(line, x);
      const int64_t in = features_of(line, x, 1), out = line.whole(0, "number of channels"),
                    kernel = line.whole(1, "kernel"), stride = line.whole_option("stride", 1);
      auto body = std::make_shared<Sequential>();
      models::append_conv_norm(*body, in, out, kernel, {.stride = stride, .padding = kernel / 2}, relu());
      models::append_conv_norm(*body, out, out, kernel, {.padding = kernel / 2}, nullptr);
      auto whole = std::make_shared<Sequential>();
      whole->append(std::make_shared<Residual>(body, models::shortcut_of(in, out, stride)));
      whole->append(relu());
      return whole;
    },
};

MILLRACE_LAYER(max_pool){
    .name = "max-pool",
    .usage = "KERNEL [stride=KERNEL] [padding=0]",
    .doc = "the maxima of windows",
    .most_numbers = 1,
    .options = {"stride", "padding"},
    .make =
        [](const LayerLine& line, const Tensor& x) {
          need_pictures(line, x);
          return max_pool2d(line.whole(0, "kernel"), line.whole_option("stride", 0),
                            line.whole_option("padding", 0));
        },
};

MILLRACE_LAYER(avg_pool){
    .name = "avg-pool",
    .usage = "KERNEL [stride=KERNEL] [padding=0]",
    .doc = "the means of windows",
    .most_numbers = 1,
    .options = {"stride", "padding"},
    .make =
        [](const LayerLine& line, const Tensor& x) {
          need_pictures(line, x);
          return avg_pool2d(line.whole(0, "kernel"), line.whole_option("stride", 0),
                            line.whole_option("padding", 0));
        },
};

MILLRACE_LAYER(global_avg_pool){
    .name = "global-avg-pool",
    .usage = "",
    .doc = "the mean of each channel",
    .make =
        [](const LayerLine& line, const Tensor& x) {
          need_pictures(line, x);
          return global_avg_pool();
        },
};

}  // namespace millrace::nn::layers
