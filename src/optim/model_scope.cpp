#include "optim/model_scope.h"

#include <utility>

#include "base/contains.h"
#include "base/format.h"
#include "trace/node.h"

namespace millrace::optim {

std::vector<nn::Named> tensors_of(nn::Module& model) {
  std::vector<nn::Named> all = model.parameters();
  for (const nn::Named& buffer : model.buffers()) all.push_back(buffer);
  return all;
}

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
      *named.tensor = stand_ins_.back();
    }
}

void ModelScope::use_symbols() {
  replace([&](const nn::Named& named) {
    const Type& type = named.tensor->type();
    return Tensor::symbol(named.name, stored_narrow(stand_ins_.size()) ? Type{f32, type.shape} : type);
  });
}

void ModelScope::use_constants() {
  replace([&](const nn::Named& named) {
    const Array array = value_of(named);
    Tensor value(stored_narrow(stand_ins_.size()) ? array.converted(f32) : array);
    value.node()->name = named.name;
    return value;
  });
}

bool ModelScope::stored_narrow(size_t i) const {
  return i < parameters_.size() && originals_[i].dtype() == bf16;
}

trace::Captured ModelScope::as_stored(trace::Captured captured, int first) const {
  std::vector<bool> narrow(captured.graph.inputs().size(), false);
  for (auto i = static_cast<size_t>(first); i < narrow.size(); ++i)
    narrow[i] = stored_narrow(i - static_cast<size_t>(first));
  return with_narrow_inputs(std::move(captured), narrow);
}

// As a rewrite of the whole graph: a cast among the recorded operations would be recorded again in every
// loop's body.
trace::Captured with_narrow_inputs(trace::Captured captured, const std::vector<bool>& narrow) {
  if (!contains(narrow, true)) return captured;
  const Graph& from = captured.graph;
  Rewriter rewrite(from);
  Graph& to = rewrite.graph();
  for (size_t i = 0; i < from.inputs().size(); ++i) {
    Type type = from.type(from.inputs()[i]);
    if (narrow[i]) type.dtype = bf16;
    rewrite.set(from.inputs()[i], to.input(from.input_names()[i], type));
  }
  for (size_t i = 0; i < from.inputs().size(); ++i) {
    if (!narrow[i]) continue;
    to.set_origin(from.input_names()[i]);
    rewrite.set(from.inputs()[i], to.add("cast", {to.inputs()[i]}, {{"dtype", f32}}));
  }
  for (int i = 0; i < from.size(); ++i)
    if (!rewrite.has({i, 0})) rewrite.copy(i);
  trace::Captured result;
  for (const auto& [slot, value] : captured.values)
    if (rewrite.has(value)) result.values[slot] = rewrite[value];
  result.graph = rewrite.finish();
  return result;
}

}  // namespace millrace::optim
