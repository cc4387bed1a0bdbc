// Layers without parameters, and layers of layers.
#include <millrace/nn.h>

#include "base/format.h"

namespace millrace::nn {
namespace {

std::shared_ptr<Module> function(std::function<Tensor(const Tensor&)> f) {
  return std::make_shared<Function>(std::move(f));
}

}  // namespace

Function::Function(std::function<Tensor(const Tensor&)> f) : f_(std::move(f)) {
  if (!f_) fail<InputError>("a layer needs a function");
}

std::shared_ptr<Module> relu() {
  return function([](const Tensor& x) { return millrace::relu(x); });
}
std::shared_ptr<Module> relu6() {
  return function([](const Tensor& x) { return clamp(x, 0, 6); });
}
std::shared_ptr<Module> gelu() {
  return function([](const Tensor& x) { return millrace::gelu(x); });
}
std::shared_ptr<Module> silu() {
  return function([](const Tensor& x) { return millrace::silu(x); });
}
std::shared_ptr<Module> sigmoid() {
  return function([](const Tensor& x) { return millrace::sigmoid(x); });
}
std::shared_ptr<Module> tanh() {
  return function([](const Tensor& x) { return millrace::tanh(x); });
}
std::shared_ptr<Module> softmax(int axis) {
  return function([axis](const Tensor& x) { return millrace::softmax(x, axis); });
}

std::shared_ptr<Module> max_pool2d(int64_t kernel, int64_t stride, int64_t padding) {
  if (stride == 0) stride = kernel;
  return function([=](const Tensor& x) {
    return millrace::max_pool2d(x, {kernel, kernel}, {stride, stride}, {padding, padding, padding, padding});
  });
}

std::shared_ptr<Module> avg_pool2d(int64_t kernel, int64_t stride, int64_t padding) {
  if (stride == 0) stride = kernel;
  return function([=](const Tensor& x) {
    return millrace::avg_pool2d(x, {kernel, kernel}, {stride, stride}, {padding, padding, padding, padding});
  });
}

std::shared_ptr<Module> global_avg_pool() {
  return function([](const Tensor& x) { return mean(x, {2, 3}); });
}

std::shared_ptr<Module> flatten() {
  return function([](const Tensor& x) { return millrace::flatten(x, 1); });
}

Sequential::Sequential(std::vector<std::shared_ptr<Module>> layers) {
  for (auto& layer : layers) append(std::move(layer));
}

void Sequential::append(std::shared_ptr<Module> layer) {
  append(std::to_string(layers_.size()), std::move(layer));
}

void Sequential::append(const std::string& name, std::shared_ptr<Module> layer) {
  layers_.push_back(child(name, std::move(layer)));
}

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (const auto& layer : layers_) y = (*layer)(y);
  return y;
}

Residual::Residual(std::shared_ptr<Module> body, std::shared_ptr<Module> shortcut,
                   std::shared_ptr<Module> activation, const ResidualNames& names)
    : body_(child(names.body, std::move(body))) {
  if (shortcut) shortcut_ = child(names.shortcut, std::move(shortcut));
  if (activation) activation_ = child("", std::move(activation));
}

Tensor Residual::forward(const Tensor& x) {
  const Tensor sum = (*body_)(x) + (shortcut_ ? (*shortcut_)(x) : x);
  return activation_ ? (*activation_)(sum) : sum;
}

Type output_type(Module& module, std::span<const Type> inputs) {
  std::vector<Tensor> symbols;
  for (const Type& type : inputs)
    symbols.push_back(Tensor::symbol(fmt::format("input {}", symbols.size()), type));
  struct Mode {
    Module& of;
    bool before;
    ~Mode() { of.train(before); }
  } mode{module, module.training()};
  module.eval();
  return module(symbols).type();
}

Tensor task_loss(Task task, const Tensor& output, const Tensor& target) {
  switch (task) {
    case Task::binary:
      return bce_with_logits(output, target);
    case Task::tokens:
      return cross_entropy(reshape(output, {output.dim(0) * output.dim(1), output.dim(2)}),
                           millrace::flatten(target));
    case Task::classes:
      break;
  }
  return cross_entropy(output, target);
}

}  // namespace millrace::nn
