// A small convolutional network for small pictures (digits, letters): three halvings, batch norm, mean over
// positions.
#include "base/format.h"
#include "nn/models/architecture.h"
#include "nn/models/models.h"

namespace millrace::nn::models {
namespace {

Model convnet(const std::string& kind, const Settings& /*settings*/, const ModelOptions& options) {
  const Shape input = picture_shape(options, {1, 32, 32}, kind);
  if (input[1].size() < 16 || input[2].size() < 16)
    fail<InputError>("convnet needs pictures of at least 16 × 16, not {}", input.str());
  auto layers = std::make_shared<Sequential>();
  int64_t in = input[0].size();
  for (const int64_t width : {32, 64, 128}) {
    append_conv_norm(*layers, in, width, 3, {.padding = 1}, nn::relu());
    layers->append(nn::max_pool2d(2));
    in = width;
  }
  append_conv_norm(*layers, in, 128, 3, {.padding = 1}, nn::relu());
  layers->append(nn::global_avg_pool());
  layers->append(std::make_shared<Linear>(128, options.classes ? options.classes : 10));
  return {kind, layers, {{"x0", batch_of(input)}}};
}

}  // namespace

MILLRACE_ARCHITECTURE(convnet){
    .name = "convnet",
    .doc = "four convolutions with batch norm, for small pictures",
    .takes = "picture",
    .make = convnet,
};

}  // namespace millrace::nn::models
