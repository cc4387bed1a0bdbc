// Residual networks (He et al., arXiv 1512.03385): resnet18, resnet50, and resnet18_cifar for small pictures.
#include <numeric>

#include "nn/models/architecture.h"
#include "nn/models/models.h"

namespace millrace::nn::models {
namespace {

/// Two 3×3 convolutions, or 1×1, 3×3, 1×1 (`bottleneck`, four times as wide at the end).
std::shared_ptr<Module> residual_block(int64_t in, int64_t mid, int64_t stride, bool bottleneck,
                                       double drop_path) {
  const int64_t out = bottleneck ? 4 * mid : mid;
  auto body = std::make_shared<Sequential>();
  int convs = 0;
  const auto add = [&](int64_t from, int64_t to, int64_t kernel, int64_t step) {
    if (convs > 0) body->append("", nn::relu());
    const std::string n = std::to_string(++convs);
    body->append("conv" + n,
                 std::make_shared<Conv2d>(from, to, kernel,
                                          ConvOptions{.stride = step, .padding = kernel / 2, .bias = false}));
    body->append("bn" + n, std::make_shared<BatchNorm>(to));
  };
  if (bottleneck) {
    add(in, mid, 1, 1);
    add(mid, mid, 3, stride);
    add(mid, out, 1, 1);
  } else {
    add(in, mid, 3, stride);
    add(mid, mid, 3, 1);
  }
  body->append("", std::make_shared<DropPath>(drop_path));
  return std::make_shared<Residual>(body, shortcut_of(in, out, stride), nn::relu(),
                                    ResidualNames{"", "down"});
}

Model resnet(const std::string& kind, const Settings& settings, const ModelOptions& options) {
  const bool small = kind == "resnet18_cifar", deep = kind == "resnet50";
  const Shape input = picture_shape(options, small ? Shape{3, 32, 32} : Shape{3, 224, 224}, kind);
  const std::vector<int> depths = deep ? std::vector{3, 4, 6, 3} : std::vector{2, 2, 2, 2};
  auto stem = std::make_shared<Sequential>(), layers = std::make_shared<Sequential>(),
       whole = std::make_shared<Sequential>();
  append_conv_norm(*stem, input[0].size(), 64, small ? 3 : 7,
                   {.stride = small ? 1 : 2, .padding = small ? 1 : 3}, nn::relu());
  if (!small) stem->append(nn::max_pool2d(3, 2, 1));
  int64_t in = 64, block = 0;
  const int64_t blocks = std::accumulate(depths.begin(), depths.end(), int64_t{0});
  for (size_t stage = 0; stage < depths.size(); ++stage) {
    const int64_t width = int64_t{64} << stage;
    for (int i = 0; i < depths[stage]; ++i) {
      layers->append(residual_block(in, width, stage > 0 && i == 0 ? 2 : 1, deep,
                                    drop_path_of(settings.number("drop_path"), block++, blocks)));
      in = deep ? 4 * width : width;
    }
  }
  whole->append("stem", stem);
  whole->append("layers", layers);
  whole->append("", nn::global_avg_pool());
  whole->append("head", std::make_shared<Linear>(in, options.classes ? options.classes : small ? 10 : 1000));
  return {kind, whole, {{"x0", batch_of(input)}}};
}

Architecture resnet_kind(const char* name, const char* doc) {
  return {.name = name, .doc = doc, .takes = "picture", .settings = {drop_path_setting()}, .make = resnet};
}

}  // namespace

MILLRACE_ARCHITECTURE(resnet18) = resnet_kind("resnet18", "ResNet-18, of blocks of two convolutions");

MILLRACE_ARCHITECTURE(resnet50) = resnet_kind("resnet50", "ResNet-50, of blocks of three convolutions");

MILLRACE_ARCHITECTURE(resnet18_cifar) = resnet_kind("resnet18_cifar",
                                                    "ResNet-18 for pictures of about 32 × 32");

}  // namespace millrace::nn::models
