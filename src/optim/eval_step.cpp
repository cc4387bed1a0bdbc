#include <algorithm>

#include <millrace/optim.h>

#include "base/format.h"
#include "ir/bind.h"
#include "optim/model_scope.h"

namespace millrace::optim {
namespace {

nn::Module& given(const std::shared_ptr<nn::Module>& model) {
  if (!model) fail<InputError>("an evaluation needs a model");
  return *model;
}

}  // namespace

struct EvalStep::Compiled {
  Bindings bindings;
  Program program;
};

EvalStep::EvalStep(std::shared_ptr<nn::Module> model, const std::vector<TensorSpec>& inputs,
                   const EvalFunction& function, const CompileOptions& options)
    : model_(std::move(model)),
      inputs_(inputs),
      graph_(build_eval_graph(given(model_), inputs, function, true)),
      options_(options) {}

EvalStep::~EvalStep() = default;

std::vector<Array> EvalStep::run(std::span<const Array> inputs) {
  if (inputs.size() != inputs_.size())
    fail<TypeError>("the model takes {} inputs, {} are given", inputs_.size(), inputs.size());
  Bindings bindings;
  for (size_t i = 0; i < inputs.size(); ++i)
    bind_dimensions(inputs_[i].name, inputs_[i].type, inputs[i], bindings);
  auto it = std::find_if(programs_.begin(), programs_.end(),
                         [&](const auto& compiled) { return compiled->bindings == bindings; });
  if (it == programs_.end()) {
    constexpr size_t capacity = 4;
    if (programs_.size() == capacity) programs_.pop_back();
    CompileOptions options = options_;
    options.bindings = bindings;
    int at = 0;
    for (const Array& input : inputs) options.inputs[at++] = input;
    for (const nn::Named& named : tensors_of(*model_)) options.inputs[at++] = value_of(named);
    programs_.push_back(std::make_unique<Compiled>(Compiled{bindings, Program::compile(graph_, options)}));
    it = programs_.end() - 1;
  }
  std::rotate(programs_.begin(), it, it + 1);
  Program& program = programs_.front()->program;
  int at = 0;
  for (const Array& input : inputs) program.bind_input(at++, input);
  for (const nn::Named& named : tensors_of(*model_)) {
    Array array = value_of(named);
    if (!program.input(at).shares_memory(array)) program.bind_input(at, std::move(array));
    ++at;
  }
  program.run();
  std::vector<Array> results;
  for (int i = 0; i < program.output_count(); ++i) results.push_back(program.output(i));
  return results;
}

Program& EvalStep::program() {
  if (programs_.empty()) fail<InputError>("no evaluation has run yet");
  return programs_.front()->program;
}

}  // namespace millrace::optim
