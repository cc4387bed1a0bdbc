#include "task/decode_model.h"

#include "base/format.h"
#include "optim/decode_graph.h"
#include "task/calibrated.h"
#include "task/generate.h"
#include "task/model.h"

namespace millrace::task {

DecodeModel decode_model(const Task& task, const std::string& precision) {
  const Continuable* const input = next_token_input(task);
  if (!input) fail<InputError>("the model does not predict the next token of a text");
  const auto logits = [&task, input](nn::Module& module, const Tensor& tokens, const Tensor& positions) {
    const std::vector<Tensor> fields = input->decoded_fields(tokens, positions);
    const std::vector<Tensor> all = static_cast<Network&>(module).logits(fields, false);
    return calibrated(*task.outputs[0], all[0]);
  };
  CompileOptions compile = compile_options(task, precision.empty() ? task.recipe.train.precision : precision);
  return optim::decode_model(task.network, logits, input->vocabulary(), input->most(), compile);
}

}  // namespace millrace::task
