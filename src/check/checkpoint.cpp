// What is saved and read back must be the model.
#include <memory>

#include "base/format.h"
#include "check/check.h"
#include "check/context.h"
#include "check/states.h"
#include "task/model.h"
#include "task/predictor.h"
#include "train/load_model.h"

namespace millrace::check {
namespace {

/// Copies the arrays of a checkpoint into a model that was made anew; the name of one that it lacks, or "".
std::string fill_model(nn::Module& model, const train::Checkpoint& from) {
  for (const nn::Named& named : optim::tensors_of(model)) {
    const Array* const found = from.tensor("model." + named.name);
    Array array = optim::value_of(named);
    if (!found || found->type() != array.type()) return named.name;
    array.assign(*found);
  }
  return {};
}

/// What a model that is made anew and filled gives.
struct Restored {
  std::vector<Array> outputs;
  std::string missing;
};
/// Of a recipe by what was learnt from the data, as `eval` and `predict` open a run.
Restored restore_anew(Context& context, train::Checkpoint saved, const std::vector<Array>& given) {
  const Subject& s = context.subject();
  task::Task task;
  std::shared_ptr<nn::Module> other;
  if (context.task()) {
    saved.encoding = context.task()->encoding();
    task = task::load_task(context.task()->recipe, saved.encoding);
    task::make_network(task);
    other = task.network;
  } else {
    other = s.make();
  }
  Restored restored;
  restored.missing = fill_model(*other, saved);
  if (!restored.missing.empty()) return restored;
  std::vector<optim::TensorSpec> specs;
  for (size_t i = 0; i < given.size(); ++i) specs.push_back({s.inputs[s.given[i]].name, given[i].type()});
  optim::EvalStep step(other, specs, s.outputs);
  for (const Array& output : step.run(given)) restored.outputs.push_back(output.converted(f32));
  return restored;
}

Finding run_checkpoint(Context& context) {
  constexpr const char* advice =
      "register all that forward() uses: weights with parameter(), what else changes with buffer(), layers "
      "with child(); checkpoints hold nothing else";
  (void)context.step();
  for (size_t i = 0; i < 2; ++i) context.train(context.batch(i), context.subject().lr);
  const States states = states_of(context);
  const train::Checkpoint saved = through_file(states, 2);
  for (const auto& [name, array] : states) {
    const Array* const read = saved.tensor(name);
    if (!read || !read->identical(array))
      return failed(fmt::format("{} is another after it was written and read", name),
                    "this is a defect of Millrace, or of the disk that holds temporary files");
  }
  const std::vector<Array> given = context.given(context.batch());
  const std::vector<Array> before = context.outputs(given);
  const Restored restored = restore_anew(context, saved, given);
  if (!restored.missing.empty())
    return failed(
        fmt::format("a model made anew has a parameter that the checkpoint lacks: {}", restored.missing),
        advice);
  for (size_t k = 0; k < before.size(); ++k)
    if (!before[k].identical(restored.outputs[k]))
      return failed("a model made anew, with all that the checkpoint holds, gives other outputs", advice);
  return passed(fmt::format("{} arrays written and read; a model made anew of them gives the same bits",
                            states.size()));
}

}  // namespace

MILLRACE_CHECK_KIND(checkpoint){
    .name = "checkpoint",
    .doc = "a checkpoint is written, read, and put into a model made anew: the same outputs",
    .matters = "what the checkpoint does not hold is lost when the run ends, and the saved model is another",
    .place = 330,
    .run = run_checkpoint,
};

}  // namespace millrace::check
