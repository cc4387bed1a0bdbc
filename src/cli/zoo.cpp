#include "cli/zoo.h"

#include <algorithm>
#include <cmath>

#include <millrace/operator.h>
#include <millrace/random.h>

#include "base/format.h"
#include "base/number_from.h"
#include "base/size_text.h"
#include "base/words.h"
#include "optim/kinds.h"

namespace millrace::cli {
namespace {

std::vector<optim::TensorSpec> bound_inputs(const nn::Model& model, const Bindings& sizes) {
  std::vector<optim::TensorSpec> specs;
  for (const nn::InputSpec& input : model.inputs)
    specs.push_back({input.name, {input.type.dtype, input.type.shape.specialise(sizes)}});
  return specs;
}

/// The targets of the peers' benchmark: 0, 1, 2 … modulo the number of classes.
void fill_targets(Array& targets, nn::Task task, int64_t classes) {
  for (int64_t i = 0; i < targets.count(); ++i)
    targets.set(i, static_cast<double>(i % (task == nn::Task::binary ? 2 : classes)));
}

/// With its usual settings, but for adamw's decay.
std::shared_ptr<const optim::Optimizer> optimizer_named(const std::string& name, nn::Module& model) {
  const optim::OptimizerKind& kind = optim::optimizer_kinds().at(name);
  Settings settings(optim::optimizer_settings(kind));
  if (name.ends_with("adamw")) settings.set("weight_decay", 0.01);
  return optim::make_optimizer(kind, settings, 0, 0, model);
}

}  // namespace

CompileOptions compile_options(const ZooOptions& o) {
  CompileOptions options;
  options.precision = o.precision;
  options.exact = o.exact;
  if (!o.memory.empty()) options.memory = static_cast<int64_t>(parse_bytes("--memory", o.memory));
  return options;
}

Graph inference_graph(const nn::Model& model, const Bindings& sizes) {
  return optim::build_eval_graph(
      *model.module, bound_inputs(model, sizes),
      [](nn::Module& module, std::span<const Tensor> x) {
        return std::vector<optim::NamedTensor>{{"y", module(x)}};
      },
      false);
}

void fill_random(Array& array, const nn::InputSpec& spec, uint64_t stream) {
  RandomStream random(1, stream);
  for (int64_t i = 0; i < array.count(); ++i) {
    if (array.dtype().is_float()) {
      const double radius = std::sqrt(-2 * std::log(1 - static_cast<double>(random.uniform())));
      array.set(i, radius * std::cos(6.283185307179586 * random.uniform()));
    } else {
      array.set_int(i, static_cast<int64_t>(spec.low) +
                           random.below(static_cast<uint32_t>(std::max(1.0, spec.high - spec.low))));
    }
  }
}

ZooStep::ZooStep(const ZooOptions& options)
    : model_(nn::make_model(options.model)),
      batch_(options.batch),
      lr_(options.optimizer.ends_with("sgd") ? 1e-3 : 1e-4) {
  model_.module->initialise(0);
  options.train ? build_train(options) : build_infer(options);
}

void ZooStep::build_train(const ZooOptions& options) {
  std::vector<optim::TensorSpec> inputs = bound_inputs(model_, {{"batch", batch_}});
  std::vector<Type> types;
  for (const optim::TensorSpec& input : inputs) types.push_back(input.type);
  const Shape output = nn::output_type(*model_.module, types).shape;
  const int64_t classes = output.empty() ? 1 : output.back().size();
  const nn::Task task = model_.task;
  Shape target(output.begin(), task == nn::Task::binary ? output.end() : output.end() - 1);
  inputs.push_back({"target", {task == nn::Task::binary ? f32 : i64, target}});

  train_ = std::make_unique<optim::TrainStep>(
      model_.module, inputs,
      [task](nn::Module& module, std::span<const Tensor> x) {
        return optim::StepResult{nn::task_loss(task, module(x.first(x.size() - 1)), x.back())};
      },
      optimizer_named(options.optimizer, *model_.module),
      optim::TrainOptions{.compile = compile_options(options), .accumulate = options.accumulate});
  for (size_t i = 0; i < model_.inputs.size(); ++i)
    fill_random(train_->input(static_cast<int>(i)), model_.inputs[i], i + 1);
  fill_targets(train_->input(static_cast<int>(model_.inputs.size())), task, classes);
}

void ZooStep::build_infer(const ZooOptions& options) {
  if (options.precision == "bf16-pure") model_.module->store_parameters(bf16);
  const Graph graph = inference_graph(model_, {{"batch", batch_}});
  infer_ = std::make_unique<Program>(Program::compile(graph, compile_options(options)));
  for (size_t i = 0; i < model_.inputs.size(); ++i)
    fill_random(infer_->input(static_cast<int>(i)), model_.inputs[i], i + 1);
}

void ZooStep::run() {
  if (train_)
    train_->run(lr_);
  else
    infer_->run();
}

int64_t parse_batch(const std::string& text) {
  const int64_t batch = number_from(trimmed(text)).value_or(0);
  if (batch < 1) fail<InputError>("BATCH must be a number of 1 or more, but it is '{}'", text);
  return batch;
}

std::string precision_text(const std::string& wanted, const Program& program) {
  std::string used = program.precision();
  size_t narrow = 0, wide = 0;
  for (const LaunchInfo& launch : program.launches()) {
    const Operator* op = find_operator(launch.operation);
    if (op && (arithmetic_of(*op) == Arithmetic::narrow || op->narrow_operands != 0))
      ++(launch.bits == 16 ? narrow : wide);
  }
  if (used == "bf16" && wide > 0)
    used += fmt::format(", but {} of {} products, convolutions and attentions in f32", wide, narrow + wide);
  return wanted == "bf16-pure" ? fmt::format("bf16-pure (computed in {})", used) : used;
}

std::string step_text(bool train, int64_t batch, const std::string& precision, const Program& program) {
  return fmt::format("{}, batch {}, {}", train ? "training" : "inference", batch,
                     precision_text(precision, program));
}

std::string model_names() { return fmt::format(" {}", fmt::join(nn::model_kinds(), " ")); }

}  // namespace millrace::cli
