#include <algorithm>
#include <utility>

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

Tensor Module::forward(const Tensor& x) {
  if (in_default_)
    fail<TypeError>("a module must override forward or forward_many{}",
                    name_.empty() ? "" : fmt::format(" (in layer '{}')", trace::current_layer()));
  return forward_many(std::span(&x, 1));
}

Tensor Module::forward_many(std::span<const Tensor> inputs) {
  if (inputs.size() != 1) fail<TypeError>("the model takes one input, {} are given", inputs.size());
  struct Inside {
    bool& flag;
    bool before;
    ~Inside() { flag = before; }
  } inside{in_default_, std::exchange(in_default_, true)};
  return forward(inputs[0]);
}

Tensor& Module::parameter(const std::string& name, const Shape& shape, Initialiser initialiser,
                          bool trainable) {
  check_new(name);
  if (!initialiser) fail<InputError>("parameter '{}' needs an initialiser", name);
  entries_.push_back({name, Tensor::symbol(name, {f32, shape}), std::move(initialiser), {}, trainable});
  return entries_.back().tensor;
}

Tensor& Module::buffer(const std::string& name, Array initial) {
  check_new(name);
  entries_.push_back({name, initial.clone(), {}, initial, false});
  return entries_.back().tensor;
}

void Module::check_new(const std::string& name) const {
  const bool known =
      std::any_of(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; }) ||
      std::any_of(children_.begin(), children_.end(), [&](const auto& m) { return m->name_ == name; });
  if (known) fail<InputError>("a module cannot have two members named '{}'", name);
}

void Module::adopt(const std::string& name, std::shared_ptr<Module> module) {
  if (!module) fail<InputError>("the child '{}' of a module is null", name);
  // A layer without parameters may stand in several places; another would have two names.
  const bool again = std::find(children_.begin(), children_.end(), module) != children_.end();
  if (module.get() == this || (again && module->parameters().size() + module->buffers().size() > 0))
    fail<InputError>("the module that is to be the child '{}' is there already", name);
  if (!name.empty()) check_new(name);
  module->name_ = name;
  children_.push_back(std::move(module));
}

void Module::visit(const std::string& prefix, const std::function<void(const std::string&, Entry&)>& f) {
  for (Entry& entry : entries_) f(prefix + entry.name, entry);
  for (const auto& module : children_)
    module->visit(module->name_.empty() ? prefix : prefix + module->name_ + ".", f);
}

void Module::remove_child(const std::string& name) {
  std::erase_if(children_, [&](const auto& module) { return module->name_ == name; });
}

std::vector<std::pair<std::string, Module*>> Module::modules() {
  std::vector<std::pair<std::string, Module*>> all = {{"", this}};
  for (const auto& module : children_)
    for (const auto& [inner, each] : module->modules()) {
      const std::string& own = module->name_;
      all.emplace_back(own + (own.empty() || inner.empty() ? "" : ".") + inner, each);
    }
  return all;
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
    const DType stored = entry.tensor.dtype();
    Array values(f32, entry.tensor.shape());
    entry.initialiser(values, seed, name);
    // A copy: who knows what else the initialiser did with the memory (Array::stamp).
    entry.tensor = stored == f32 ? values.clone() : values.converted(stored);
  });
}

void Module::train(bool on) {
  training_ = on;
  for (const auto& module : children_) module->train(on);
}

void Module::store_parameters(DType dtype) {
  if (dtype != f32 && dtype != bf16)
    fail<InputError>("parameters are stored as f32 or bf16, not as {}", dtype.name());
  visit("", [&](const std::string& name, Entry& entry) {
    Tensor& tensor = entry.tensor;
    if (!entry.initialiser || tensor.dtype() == dtype) return;
    tensor = tensor.is_symbol() ? Tensor::symbol(name, {dtype, tensor.shape()})
                                : Tensor(tensor.to_array().converted(dtype));
  });
}

void Module::set_trainable(const std::function<bool(const std::string&)>& which, bool trainable) {
  visit("", [&](const std::string& name, Entry& entry) {
    if (entry.initialiser && which(name)) entry.trainable = trainable;
  });
}

}  // namespace millrace::nn
