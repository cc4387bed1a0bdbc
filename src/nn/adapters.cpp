// Low-rank adapters of linear layers.
#include <cmath>

#include <millrace/nn.h>

#include "base/format.h"

namespace millrace::nn {

Adapter::Adapter(int64_t in, int64_t out, int64_t rank, double alpha)
    : a_(parameter("a", {rank, in}, init::kaiming_uniform(std::sqrt(5.0)))),
      b_(parameter("b", {out, rank}, init::constant(0))),
      scale_(alpha / static_cast<double>(rank)) {}

Tensor Adapter::forward(const Tensor& x) { return linear(linear(x, a_, Tensor()) * scale_, b_, Tensor()); }

Tensor Adapter::added() const { return matmul(b_, a_) * scale_; }

Array Adapter::merged(const Array& weight) {
  const Array a = a_.to_array().converted(f32), b = b_.to_array().converted(f32);
  Array sum = weight.converted(f32).clone();
  const std::span<const float> x = a.as<float>(), y = b.as<float>();
  const std::span<float> w = sum.as<float>();
  const auto rank = static_cast<size_t>(a.shape()[0].size()), in = static_cast<size_t>(a.shape()[1].size());
  std::vector<double> row(in);
  for (size_t i = 0; i < w.size() / in; ++i) {
    std::fill(row.begin(), row.end(), 0.0);
    for (size_t k = 0; k < rank; ++k)
      for (size_t j = 0; j < in; ++j) row[j] += static_cast<double>(y[i * rank + k]) * x[k * in + j];
    for (size_t j = 0; j < in; ++j) w[i * in + j] = static_cast<float>(w[i * in + j] + scale_ * row[j]);
  }
  return sum;
}

void Linear::adapt(int64_t rank, double alpha) {
  const int64_t in = weight.dim(1).size(), out = weight.dim(0).size();
  if (rank < 1 || rank >= std::min(in, out))
    fail<InputError>("an adapter of rank {} of a product of {} to {} would have as many weights as that",
                     rank, in, out);
  adapt(std::make_shared<Adapter>(in, out, rank, alpha));
}

void Linear::adapt(std::shared_ptr<Adapter> adapter) {
  if (adapter_) remove_child("lora");
  adapter_ = adapter ? child("lora", std::move(adapter)) : nullptr;
}

MergedAdapters::MergedAdapters(Module& model) {
  for (const auto& [name, module] : model.modules()) {
    auto* const layer = dynamic_cast<Linear*>(module);
    if (!layer || !layer->adapter()) continue;
    kept_.push_back({layer, layer->adapter(), layer->weight});
    layer->weight = Tensor(layer->adapter()->merged(layer->weight.to_array()));
    layer->adapt(nullptr);
  }
}

MergedAdapters::~MergedAdapters() {
  for (const Kept& each : kept_) {
    each.layer->weight = each.weight;
    each.layer->adapt(each.adapter);
  }
}

}  // namespace millrace::nn
