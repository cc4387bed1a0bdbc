#include "cli/model_step.h"

#include <filesystem>
#include <fmt/core.h>

#include "base/format.h"
#include "base/is_run.h"
#include "cli/model_sizes.h"
#include "optim/kinds.h"
#include "session/format.h"
#include "session/summary.h"

namespace millrace::cli {
namespace {

/// Is the argument a model rather than a recipe? With `infer` a run folder is one, too.
bool is_model(const std::string& path, bool infer) {
  if (is_run(path)) return infer;
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && model_format_of(path);
}

}  // namespace

Command& StepArguments::declare(Command& command) {
  return command
      .positional("RECIPE", recipe, "a recipe, or a run folder; or a model (.onnx, .mill), for inference",
                  false)
      .positional("KEY=VALUE", overrides, "changes of the recipe", false)
      .option("--model", zoo.model,
              "instead of a recipe a built-in network on random inputs:" + model_names())
      .option("--batch", zoo.batch, "items a step, with --model")
      .option("--accumulate", zoo.accumulate, "train in so many parts of the batch, with --model")
      .option("--precision", precision,
              "fp32, bf16, bf16-pure or fp16, with --model or an .onnx (default fp32)")
      .option("--sizes", sizes, sizes_doc)
      .option("--optimizer", zoo.optimizer,
              fmt::format("with --model, with its usual settings (default adamw): {}",
                          fmt::join(optim::optimizer_kinds().names(), ", ")))
      .flag("--infer", infer, "inference instead of training, with --model or a run folder");
}

bool StepArguments::of_file() {
  if (recipe.empty() == zoo.model.empty()) fail<InputError>("give a RECIPE, or --model NAME: one of the two");
  if (!precision.empty()) zoo.precision = precision;
  zoo.train = !infer;
  const bool file = zoo.model.empty() && is_model(recipe, infer);
  if (infer && zoo.model.empty() && !file)
    fail<InputError>("--infer goes with --model NAME, a run folder or an ONNX model");
  if (!sizes.empty() && !file) fail<InputError>("--sizes goes with a model's file, not with a recipe");
  if (zoo.batch < 1) fail<InputError>("--batch is 1 or more, not {}", zoo.batch);
  if (file && !overrides.empty()) fail<InputError>("{}: is no recipe, so it has no keys to change", recipe);
  return file;
}

train::Observer StepArguments::observer() const {
  train::Observer observer;
  if (!json) observer.message = [](const std::string& line) { fmt::print("{}\n", line); };
  return observer;
}

ModelStep::ModelStep(const StepArguments& a) {
  const SessionModel model = load_session_model(a.recipe);
  sizes_ = example_sizes(model.inputs, parse_sizes(a.sizes, model.inputs));
  CompileOptions options = model.compile;
  if (!a.precision.empty()) options.precision = a.precision;
  options.bindings = sizes_;
  for (size_t i = 0; i < model.weights.size(); ++i)
    options.inputs.emplace(static_cast<int>(model.inputs.size() + i), model.weights[i]);
  precision_ = options.precision;
  const Graph graph = model.graph(sizes_);
  program_.emplace(Executable::compile(graph, options), options.inputs);
  for (size_t i = 0; i < model.inputs.size(); ++i)
    fill_made_up(program_->input(static_cast<int>(i)), 1, i + 1);
  if (!model.inputs.empty())
    if (const Shape& first = program_->input(0).shape(); first.rank() > 0) items_ = first[0].size();
}

std::string ModelStep::detail() const {
  return fmt::format("inference, {}{}", sizes_.empty() ? "" : sizes_text(sizes_) + ", ",
                     precision_text(precision_, *program_));
}

}  // namespace millrace::cli
