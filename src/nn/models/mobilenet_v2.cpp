// MobileNetV2 (Sandler et al., arXiv 1801.04381).
#include "nn/models/architecture.h"
#include "nn/models/models.h"

namespace millrace::nn::models {
namespace {

std::shared_ptr<Module> inverted_residual(int64_t in, int64_t out, int64_t stride, int64_t expand) {
  auto body = std::make_shared<Sequential>();
  const int64_t mid = in * expand;
  if (expand != 1) append_conv_norm(*body, in, mid, 1, {}, relu6());
  append_conv_norm(*body, mid, mid, 3, {.stride = stride, .padding = 1, .groups = mid}, relu6());
  append_conv_norm(*body, mid, out, 1, {}, nullptr);
  if (stride == 1 && in == out) return std::make_shared<Residual>(body);
  auto plain = std::make_shared<Sequential>();
  plain->append("body", body);
  return plain;
}

Model mobilenet_v2(const std::string& kind, const Settings& /*settings*/, const ModelOptions& options) {
  const Shape input = picture_shape(options, {3, 224, 224}, kind);
  struct Stage {
    int64_t expand, out;
    int repeats;
    int64_t stride;
  };
  auto features = std::make_shared<Sequential>(), whole = std::make_shared<Sequential>();
  append_conv_norm(*features, input[0].size(), 32, 3, {.stride = 2, .padding = 1}, relu6());
  int64_t in = 32;
  for (const Stage& s : {Stage{1, 16, 1, 1},
                         {6, 24, 2, 2},
                         {6, 32, 3, 2},
                         {6, 64, 4, 2},
                         {6, 96, 3, 1},
                         {6, 160, 3, 2},
                         {6, 320, 1, 1}})
    for (int i = 0; i < s.repeats; ++i) {
      features->append(inverted_residual(in, s.out, i == 0 ? s.stride : 1, s.expand));
      in = s.out;
    }
  append_conv_norm(*features, in, 1280, 1, {}, relu6());
  whole->append("features", features);
  whole->append("", global_avg_pool());
  whole->append("head", std::make_shared<Linear>(1280, options.classes ? options.classes : 1000));
  return {kind, whole, {{"x0", batch_of(input)}}};
}

}  // namespace

MILLRACE_ARCHITECTURE(mobilenet_v2){
    .name = "mobilenet_v2",
    .doc = "MobileNetV2, for fewer operations",
    .takes = "picture",
    .make = mobilenet_v2,
};

}  // namespace millrace::nn::models
