// The small network of a first MNIST lesson (after LeCun et al., 1998).
#include "base/format.h"
#include "nn/models/architecture.h"
#include "nn/models/models.h"

namespace millrace::nn::models {
namespace {

Model lenet(const std::string& kind, const Settings& /*settings*/, const ModelOptions& options) {
  const Shape input = picture_shape(options, {1, 28, 28}, kind);
  const auto after = [](int64_t size) { return ((size - 4) / 2 - 4) / 2; };  // two 5×5 windows and halvings
  const int64_t features = 32 * after(input[1].size()) * after(input[2].size());
  if (features <= 0) fail<InputError>("lenet needs pictures of at least 16 × 16, not {}", input.str());
  auto body = std::make_shared<Sequential>();
  body->append(std::make_shared<Conv2d>(input[0].size(), 16, 5));
  body->append(nn::relu());
  body->append(nn::max_pool2d(2));
  body->append(std::make_shared<Conv2d>(16, 32, 5));
  body->append(nn::relu());
  body->append(nn::max_pool2d(2));
  body->append(nn::flatten());
  body->append(std::make_shared<Linear>(features, 128));
  body->append(nn::relu());
  body->append(std::make_shared<Linear>(128, options.classes ? options.classes : 10));
  auto whole = std::make_shared<Sequential>();
  whole->append("body", body);
  return {kind, whole, {{"x0", batch_of(input)}}};
}

}  // namespace

MILLRACE_ARCHITECTURE(lenet){
    .name = "lenet",
    .doc = "two convolutions and two layers, for digits",
    .takes = "picture",
    .make = lenet,
};

}  // namespace millrace::nn::models
