// The functions of neural networks.
#include "trace/functions.h"

namespace millrace {

using trace::unary;

namespace {

Tensor call(std::string_view op, const In& first, std::vector<Tensor> rest, Attributes attributes = {}) {
  rest.insert(rest.begin(), first.tensor);
  return apply(op, rest, std::move(attributes), first.where)[0];
}

}  // namespace

Tensor softmax(const In& x, int axis) { return unary("softmax", x, {{"axis", int64_t{axis}}}); }
Tensor log_softmax(const In& x, int axis) { return unary("log_softmax", x, {{"axis", int64_t{axis}}}); }

Tensor layer_norm(const In& x, const Tensor& weight, const Tensor& bias, double epsilon) {
  return call("layer_norm", x, {weight, bias}, {{"eps", epsilon}});
}

Tensor rms_norm(const In& x, const Tensor& weight, double epsilon) {
  return call("rms_norm", x, {weight}, {{"eps", epsilon}});
}

Tensor attention(const In& q, const Tensor& k, const Tensor& v, bool causal, const Tensor& mask) {
  std::vector<Tensor> rest = {k, v};
  if (mask.defined()) rest.push_back(mask);
  return call("attention", q, rest, {{"causal", causal}});
}

Tensor dropout(const In& x, double p, const RandomKey& random) {
  return call("dropout", x, {random.key}, {{"p", p}, {"stream", random.stream}});
}

Tensor random_uniform(const Shape& shape, const RandomKey& random, DType dtype, std::source_location where) {
  return unary("random_uniform", {random.key, where},
               {{"shape", shape}, {"dtype", dtype}, {"stream", random.stream}});
}

Tensor random_normal(const Shape& shape, const RandomKey& random, DType dtype, std::source_location where) {
  return unary("random_normal", {random.key, where},
               {{"shape", shape}, {"dtype", dtype}, {"stream", random.stream}});
}

Tensor cross_entropy(const In& logits, const Tensor& target, double label_smoothing) {
  return call(target.dtype().is_float() ? "cross_entropy_soft" : "cross_entropy", logits, {target},
              {{"label_smoothing", label_smoothing}});
}

Tensor bce_with_logits(const In& logits, const Tensor& target) {
  return call("binary_cross_entropy_with_logits", logits, {target});
}

Tensor mse_loss(const In& prediction, const Tensor& target) { return call("mse_loss", prediction, {target}); }

Tensor huber_loss(const In& prediction, const Tensor& target, double delta) {
  return call("huber_loss", prediction, {target}, {{"delta", delta}});
}

}  // namespace millrace
