#include "task/session_model.h"

#include <algorithm>

#include <millrace/optim.h>

#include "base/format.h"
#include "optim/model_scope.h"
#include "task/calibrated.h"
#include "task/model.h"

namespace millrace::task {
namespace {

bool takes_any_length(const Task& task) {
  return std::all_of(task.inputs.begin(), task.inputs.end(),
                     [](const auto& input) { return input->any_length(); });
}

}  // namespace

Graph inference_graph(const Task& task, int64_t length, const InferenceParts& parts) {
  if (length == 0 && !takes_any_length(task)) length = task.length();
  const auto function = [&](nn::Module& module, std::span<const Tensor> fields) {
    const std::vector<Tensor> logits = static_cast<Network&>(module).logits(fields, false);
    std::vector<optim::NamedTensor> named;
    for (size_t i = 0; i < logits.size(); ++i) {
      const Output& output = *task.outputs[i];
      const Tensor own = calibrated(output, logits[i]);
      if (parts.told) {
        for (optim::NamedTensor& each : parts.told(output, own)) named.push_back(std::move(each));
        continue;
      }
      named.emplace_back(output.prefix() + "logits", own);
      if (!parts.predictions) continue;
      named.emplace_back(output.prefix() + output.predictions_name(), output.predictions(own));
      if (Tensor decided = decisions(output, own); decided.defined())
        named.emplace_back(output.prefix() + "decisions", std::move(decided));
    }
    return named;
  };
  return optim::build_eval_graph(*task.network, specs_of(task.fields(), 0, length), function,
                                 parts.weights_as_inputs);
}

SessionModel session_model(const Task& task, const InferenceParts& parts) {
  SessionModel model;
  for (const optim::TensorSpec& spec : specs_of(task.fields(), 0, 0))
    model.inputs.push_back({spec.name, spec.type});
  const Graph graph = inference_graph(
      task, 0, {.weights_as_inputs = true, .predictions = parts.predictions, .told = parts.told});
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    model.outputs.push_back({graph.output_names()[i], graph.type(graph.outputs()[i])});
  model.graph = [&task, parts](const Bindings& sizes) {
    const auto found = sizes.find("length");
    const int64_t length = found == sizes.end() ? 0 : found->second;
    if (length > task.length() && !takes_any_length(task))
      fail<InputError>("rows of {} places: the model takes rows of {} at most", length, task.length());
    return inference_graph(task, length, parts);
  };
  if (parts.weights_as_inputs)
    for (const nn::Named& named : optim::tensors_of(*task.network))
      model.weights.push_back(optim::value_of(named));
  model.independent = {"batch"};
  model.compile = compile_options(task, task.recipe.train.precision);
  return model;
}

}  // namespace millrace::task
