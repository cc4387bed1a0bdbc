#include <millrace/nn.h>

#include "base/format.h"

namespace millrace::nn {

BatchNorm::BatchNorm(int64_t channels, const BatchNormOptions& options)
    : weight(parameter("weight", {channels}, init::constant(1), options.train_weight)),
      bias(parameter("bias", {channels}, init::constant(0))),
      running_mean(buffer("running_mean", Array(f32, {channels}))),
      running_var(buffer("running_var", Array::full(f32, {channels}, 1))),
      num_batches_tracked(buffer("num_batches_tracked", Array(i64, {}))),
      options_(options) {
  if (!(options.momentum >= 0 && options.momentum <= 1))
    fail<InputError>("the momentum of batch norm must be between 0 and 1, not {}", options.momentum);
}

Tensor BatchNorm::forward(const Tensor& x) {
  const Attributes attributes = {{"eps", options_.epsilon}};
  if (!training()) {
    const Tensor operands[] = {x, running_mean, running_var, weight, bias};
    return apply("batch_norm_inference", operands, attributes)[0];
  }
  const Tensor operands[] = {x, weight, bias};
  const std::vector<Tensor> results = apply("batch_norm", operands, attributes);
  Shape each = x.shape();
  each.erase(each.begin() + 1);
  const int64_t count = each.count();
  if (count < 2)
    fail<TypeError>("batch norm cannot train on {}: more than one value a channel is needed", x.type().str());
  const double momentum = options_.momentum;
  const double unbiased = static_cast<double>(count) / static_cast<double>(count - 1);
  running_mean = running_mean * (1 - momentum) + cast(results[1], f32) * momentum;
  running_var = running_var * (1 - momentum) + cast(results[2], f32) * (momentum * unbiased);
  num_batches_tracked = num_batches_tracked + 1;
  return results[0];
}

}  // namespace millrace::nn
