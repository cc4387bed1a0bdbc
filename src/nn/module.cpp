#include <millrace/nn.h>

#include "base/format.h"
#include "trace/node.h"

namespace millrace::nn {

Tensor Module::operator()(const Tensor& x) {
  const trace::LayerScope scope(name_);
  return forward(x);
}

Tensor Module::operator()(std::span<const Tensor> inputs) {
  const trace::LayerScope scope(name_);
  return forward_many(inputs);
}

Tensor Module::forward(const Tensor& x) { return forward_many(std::span(&x, 1)); }

Tensor Module::forward_many(std::span<const Tensor> inputs) {
  if (inputs.size() != 1) fail<TypeError>("the model takes one input, {} are given", inputs.size());
  return forward(inputs[0]);
}

Tensor& Module::parameter(const std::string& name, const Shape& shape, Initialiser initialiser,
                          bool trainable) {
  entries_.push_back({name, Tensor::symbol(name, {f32, shape}), std::move(initialiser), {}, trainable});
  return entries_.back().tensor;
}

Tensor& Module::buffer(const std::string& name, Array initial) {
  entries_.push_back({name, initial.clone(), {}, initial, false});
  return entries_.back().tensor;
}

void Module::adopt(const std::string& name, std::shared_ptr<Module> module) {
  module->name_ = name;
  children_.push_back(std::move(module));
}

void Module::visit(const std::string& prefix, const std::function<void(const std::string&, Entry&)>& f) {
  for (Entry& entry : entries_) f(prefix + entry.name, entry);
  for (const auto& module : children_)
    module->visit(module->name_.empty() ? prefix : prefix + module->name_ + ".", f);
}

std::vector<Named> Module::parameters() {
  std::vector<Named> found;
  visit("", [&](const std::string& name, Entry& entry) {
    if (entry.initialiser) found.push_back({name, &entry.tensor, entry.trainable});
  });
  return found;
}

std::vector<Named> Module::buffers() {
  std::vector<Named> found;
  visit("", [&](const std::string& name, Entry& entry) {
    if (!entry.initialiser) found.push_back({name, &entry.tensor, false});
  });
  return found;
}

Tensor* Module::find(const std::string& name) {
  Tensor* found = nullptr;
  visit("", [&](const std::string& candidate, Entry& entry) {
    if (candidate == name) found = &entry.tensor;
  });
  return found;
}

int64_t Module::parameter_count() {
  int64_t count = 0;
  for (const Named& p : parameters()) count += p.tensor->shape().count();
  return count;
}

void Module::initialise(uint64_t seed) {
  visit("", [&](const std::string& name, Entry& entry) {
    if (!entry.initialiser) {
      entry.tensor = entry.initial.clone();
      return;
    }
    Array values(entry.tensor.type());
    entry.initialiser(values, seed, name);
    entry.tensor = std::move(values);
  });
}

void Module::train(bool on) {
  training_ = on;
  for (const auto& module : children_) module->train(on);
}

void Module::set_trainable(const std::function<bool(const std::string&)>& which, bool trainable) {
  visit("", [&](const std::string& name, Entry& entry) {
    if (entry.initialiser && which(name)) entry.trainable = trainable;
  });
}

}  // namespace millrace::nn
