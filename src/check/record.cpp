#include "check/record.h"

#include "base/format.h"
#include "optim/model_scope.h"
#include "trace/linearise.h"
#include "trace/node.h"

namespace millrace::check {

Recorded record(nn::Module& model, const std::vector<optim::TensorSpec>& inputs,
                const optim::StepFunction& loss) {
  Recorded made;
  optim::ModelScope scope(model, true);
  for (const nn::Named& p : scope.parameters()) {
    made.parameters.push_back(p.name);
    made.trainable.push_back(p.trainable ? 1 : 0);
  }
  made.inputs = static_cast<int>(inputs.size());
  scope.use_symbols();
  std::vector<Tensor> symbols;
  for (const optim::TensorSpec& spec : inputs) symbols.push_back(Tensor::symbol(spec.name, spec.type));
  symbols.push_back(Tensor::symbol("key", {i64, {2}}));
  optim::StepResult result;
  {
    const trace::RandomScope random(symbols.back());
    result = loss(model, std::span<const Tensor>(symbols).first(inputs.size()));
  }
  if (!result.loss.defined() || result.loss.shape().count() != 1)
    fail<TypeError>("the loss must be a scalar{}",
                    result.loss.defined() ? fmt::format(", but it is {}", result.loss.type().str()) : "");
  const Tensor scalar = reshape(cast(result.loss, f32), {});
  symbols.insert(symbols.end(), scope.stand_ins().begin(), scope.stand_ins().end());
  trace::Captured captured =
      scope.as_stored(trace::capture(symbols, {&scalar, 1}), static_cast<int>(inputs.size()) + 1);
  made.loss = captured.value_of(scalar);
  made.graph = std::move(captured.graph);
  made.graph.set_origin("");
  made.graph.set_outputs({made.loss}, {"loss"});
  return made;
}

}  // namespace millrace::check
