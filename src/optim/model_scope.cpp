#include "optim/model_scope.h"

#include "base/format.h"
#include "trace/node.h"

namespace millrace::optim {

Array value_of(const nn::Named& named) {
  if (named.tensor->is_symbol())
    fail<InputError>("parameter '{}' has no value: call initialise(seed) or load values first", named.name);
  return named.tensor->to_array();
}

ModelScope::ModelScope(nn::Module& model, bool training)
    : model_(model), training_(model.training()), parameters_(model.parameters()), buffers_(model.buffers()) {
  for (const auto& list : {parameters_, buffers_})
    for (const nn::Named& named : list) originals_.push_back(*named.tensor);
  model_.train(training);
}

ModelScope::~ModelScope() {
  size_t next = 0;
  for (const auto& list : {parameters_, buffers_})
    for (const nn::Named& named : list) *named.tensor = originals_[next++];
  model_.train(training_);
}

void ModelScope::replace(const std::function<Tensor(const nn::Named&)>& make) {
  for (const auto& list : {parameters_, buffers_})
    for (const nn::Named& named : list) {
      stand_ins_.push_back(make(named));
      const Tensor& made = stand_ins_.back();
      const bool stored_narrow = stand_ins_.size() <= parameters_.size() && made.dtype() == bf16;
      *named.tensor = stored_narrow ? cast(made, f32) : made;
    }
}

void ModelScope::use_symbols() {
  replace([](const nn::Named& named) { return Tensor::symbol(named.name, named.tensor->type()); });
}

void ModelScope::use_constants() {
  replace([](const nn::Named& named) {
    Tensor value(value_of(named));
    value.node()->name = named.name;
    return value;
  });
}

}  // namespace millrace::optim
