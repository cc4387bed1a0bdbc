// Layers with parameters.
#include <cmath>

#include <millrace/decoding.h>
#include <millrace/nn.h>

#include "base/format.h"
#include "trace/node.h"

namespace millrace::nn {
namespace {

/// PyTorch's default for the bias of Linear and Conv2d.
Initialiser bias_init(int64_t fan_in) {
  const double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  return init::uniform(-bound, bound);
}

int64_t at_least_one(std::string_view what, int64_t value) {
  if (value < 1) fail<InputError>("{} must be at least 1, not {}", what, value);
  return value;
}

}  // namespace

Linear::Linear(int64_t in, int64_t out, bool with_bias, Initialiser init)
    : weight(parameter("weight", {out, in}, init ? std::move(init) : init::kaiming_uniform(std::sqrt(5.0)))) {
  if (with_bias) bias = &parameter("bias", {out}, bias_init(in));
}

Tensor Linear::forward(const Tensor& x) {
  const Tensor y = linear(x, weight, bias ? *bias : Tensor());
  return adapter_ ? y + (*adapter_)(x) : y;
}

Conv2d::Conv2d(int64_t in, int64_t out, int64_t kernel, const ConvOptions& o)
    : weight(parameter("weight",
                       {out, in / at_least_one("groups of a convolution", o.groups), kernel, kernel},
                       o.init ? o.init : init::kaiming_uniform(std::sqrt(5.0)))),
      options_{{o.stride, o.stride},
               {o.padding, o.padding, o.padding, o.padding},
               {o.dilation, o.dilation},
               o.groups} {
  if (o.bias)
    bias = &parameter("bias", {out}, o.bias_init ? o.bias_init : bias_init(in / o.groups * kernel * kernel));
}

Tensor Conv2d::forward(const Tensor& x) { return conv2d(x, weight, bias ? *bias : Tensor(), options_); }

LayerNorm::LayerNorm(int64_t width, double epsilon)
    : weight(parameter("weight", {width}, init::constant(1))),
      bias(parameter("bias", {width}, init::constant(0))),
      epsilon_(epsilon) {}

Tensor LayerNorm::forward(const Tensor& x) { return layer_norm(x, weight, bias, epsilon_); }

RMSNorm::RMSNorm(int64_t width, double epsilon)
    : weight(parameter("weight", {width}, init::constant(1))), epsilon_(epsilon) {}

Tensor RMSNorm::forward(const Tensor& x) { return rms_norm(x, weight, epsilon_); }

Embedding::Embedding(int64_t rows, int64_t width)
    : weight(parameter("weight", {rows, width}, init::normal(0, 1))) {}

Tensor Embedding::forward(const Tensor& indices) { return embedding(weight, indices); }

namespace {

int64_t checked_shared_heads(int64_t width, int64_t heads, int64_t shared_heads) {
  const int64_t shared = shared_heads ? shared_heads : heads;
  if (heads < 1 || width % heads != 0 || shared < 1 || heads % shared != 0)
    fail<InputError>("attention of width {} cannot have {} heads that share {} of k and v", width, heads,
                     shared);
  return shared;
}

}  // namespace

MultiheadAttention::MultiheadAttention(int64_t width, int64_t heads, bool causal, int64_t shared_heads)
    : heads_(heads),
      shared_heads_(checked_shared_heads(width, heads, shared_heads)),
      causal_(causal),
      qkv_(make<Linear>("qkv", width, width + 2 * shared_heads_ * (width / heads))),
      proj_(make<Linear>("proj", width, width)) {}

Tensor MultiheadAttention::forward(const Tensor& x) {
  return proj_(self_attention(qkv_(x), heads_, causal_, shared_heads_));
}

Tensor self_attention(const Tensor& qkv, int64_t heads, bool causal, int64_t shared_heads,
                      const Tensor& mask) {
  const int64_t all = heads + 2 * (shared_heads ? shared_heads : heads);
  if (qkv.rank() != 3 || all < 3 || !qkv.dim(2).is_static() || qkv.dim(2).size() % all != 0)
    fail<TypeError>("attention with {} heads needs [batch, length, {} × width of a head], not {}", heads, all,
                    qkv.type().str());
  if (Decoding* decoding = Decoding::current()) {
    if (!causal) fail<InputError>("attention that looks at later tokens cannot be decoded token by token");
    return decoding->attend(qkv, heads, shared_heads ? shared_heads : heads);
  }
  const Dim batch = qkv.dim(0), length = qkv.dim(1);
  const int64_t width = qkv.dim(2).size() / all;
  std::vector<Tensor> operands = {reshape(qkv, {batch, length, all, width})};
  if (mask.defined()) operands.push_back(mask);
  return reshape(apply("self_attention", operands, {{"heads", heads}, {"causal", causal}})[0],
                 {batch, length, heads * width});
}

Dropout::Dropout(double p) : p_(p) {
  if (!(p >= 0 && p < 1)) fail<InputError>("dropout takes a probability in [0, 1), not {}", p);
}

Tensor Dropout::forward(const Tensor& x) {
  return training() && p_ > 0 ? dropout(x, p_, next_random_key()) : x;
}

Normalise::Normalise(const std::vector<double>& mean, const std::vector<double>& deviation) {
  if (mean.size() != deviation.size() || mean.empty())
    fail<InputError>("normalisation needs as many means as deviations, at least one; there are {} and {}",
                     mean.size(), deviation.size());
  std::vector<double> scale, shift;
  for (size_t c = 0; c < mean.size(); ++c) {
    if (!(deviation[c] > 0)) fail<InputError>("a deviation must be greater than 0, not {}", deviation[c]);
    scale.push_back(1 / (255 * deviation[c]));
    shift.push_back(-mean[c] / deviation[c]);
  }
  const Shape shape = {static_cast<int64_t>(mean.size()), 1, 1};
  scale_ = Array::of(f32, shape, scale);
  shift_ = Array::of(f32, shape, shift);
}

Tensor Normalise::forward(const Tensor& x) {
  if (x.rank() != 4 || !(x.dim(1) == scale_.dim(0)))
    fail<TypeError>("normalise: {} given, [batch, {}, height, width] expected", x.type().str(),
                    scale_.dim(0).str());
  return cast(x, f32) * scale_ + shift_;
}

}  // namespace millrace::nn
