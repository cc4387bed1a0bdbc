#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/core.h>

#include <millrace/error.h>
#include <millrace/nn.h>
#include <millrace/optim.h>

#include "base/philox.h"
#include "cli/verbs.h"

namespace millrace::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  std::string mode, model, precision = "fp32", optimizer = "adamw";
  std::string batch;
  double seconds = 2;
  bool exact = false, profile = false;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int64_t batch_of(const Arguments& a) {
  size_t used = 0;
  int64_t batch = 0;
  try {
    batch = std::stoll(a.batch, &used);
  } catch (const std::exception&) {
  }
  if (used != a.batch.size() || batch < 1)
    throw InputError(fmt::format("BATCH must be a number of 1 or more, but it is '{}'", a.batch));
  return batch;
}

CompileOptions options_of(const Arguments& a) {
  CompileOptions options;
  options.precision = a.precision;
  options.exact = a.exact;
  return options;
}

/// Random values as the model takes them: normal floats, integers below the vocabulary.
void fill(Array& array, const nn::InputSpec& spec, uint64_t stream) {
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

/// Runs `step` for at least `seconds` after a warm-up and returns items per second.
template <typename Step>
double rate(double seconds, int64_t batch, Step&& step) {
  for (int i = 0; i < 3; ++i) step();
  int64_t runs = 0;
  const auto start = Clock::now();
  do {
    step();
    ++runs;
  } while (seconds_since(start) < seconds);
  return static_cast<double>(runs * batch) / seconds_since(start);
}

/// The slowest launches of one step.
template <typename Step>
void print_profile(Program& program, Step&& step) {
  program.set_profiling(true);
  step();
  program.set_profiling(false);
  std::vector<std::pair<std::string, int64_t>> rows = program.profile();
  int64_t total = 0;
  for (const auto& row : rows) total += row.second;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  fmt::print("{} launches, {:.3f} ms\n", rows.size(), static_cast<double>(total) / 1e6);
  for (size_t i = 0; i < std::min<size_t>(rows.size(), 30); ++i)
    fmt::print("{:9.3f} ms {:5.1f} %  {}\n", static_cast<double>(rows[i].second) / 1e6,
               100.0 * static_cast<double>(rows[i].second) / static_cast<double>(std::max<int64_t>(total, 1)),
               rows[i].first);
}

std::vector<optim::TensorSpec> bound_inputs(const nn::Model& model, int64_t batch) {
  std::vector<optim::TensorSpec> specs;
  for (const nn::InputSpec& input : model.inputs)
    specs.push_back({input.name, {input.type.dtype, input.type.shape.specialise({{"batch", batch}})}});
  return specs;
}

/// The targets of the peers' benchmark: 0, 1, 2 … modulo the number of classes.
void fill_targets(Array& targets, nn::Task task, int64_t classes) {
  for (int64_t i = 0; i < targets.count(); ++i)
    targets.set(i, static_cast<double>(i % (task == nn::Task::binary ? 2 : classes)));
}

double bench_train(const Arguments& a, nn::Model& model, int64_t batch) {
  std::vector<optim::TensorSpec> inputs = bound_inputs(model, batch);
  std::vector<Type> types;
  for (const optim::TensorSpec& input : inputs) types.push_back(input.type);
  const Shape output = nn::output_type(*model.module, types).shape;
  const int64_t classes = output.empty() ? 1 : output.back().size();
  Shape target(output.begin(), model.task == nn::Task::binary ? output.end() : output.end() - 1);
  inputs.push_back({"target", {model.task == nn::Task::binary ? f32 : i64, target}});

  std::shared_ptr<const optim::Optimizer> optimizer;
  if (a.optimizer == "sgd")
    optimizer = optim::sgd({.momentum = 0.9});
  else if (a.optimizer == "adamw")
    optimizer = optim::adamw({.common = {.weight_decay = 0.01}});
  else
    throw InputError(fmt::format("there is no optimizer '{}' here; choose sgd or adamw", a.optimizer));
  const nn::Task task = model.task;
  optim::TrainStep step(
      model.module, inputs,
      [task](nn::Module& module, std::span<const Tensor> x) {
        return optim::StepResult{nn::task_loss(task, module(x.first(x.size() - 1)), x.back())};
      },
      optimizer, {.compile = options_of(a)});
  for (size_t i = 0; i < model.inputs.size(); ++i)
    fill(step.input(static_cast<int>(i)), model.inputs[i], i + 1);
  fill_targets(step.input(static_cast<int>(model.inputs.size())), task, classes);
  const double lr = a.optimizer == "sgd" ? 1e-3 : 1e-4;
  const double items = rate(a.seconds, batch, [&] { step.run(lr); });
  if (a.profile) print_profile(step.program(), [&] { step.run(lr); });
  fmt::print("{} memory {:.1f} MB\n", a.model,
             static_cast<double>(step.program().arena_bytes() + step.program().bound_bytes()) / 1e6);
  return items;
}

double bench_infer(const Arguments& a, nn::Model& model, int64_t batch) {
  const Graph graph = optim::build_eval_graph(
      *model.module, bound_inputs(model, batch),
      [](nn::Module& module, std::span<const Tensor> x) {
        return std::vector<optim::NamedTensor>{{"y", module(x)}};
      },
      false);
  Program program = Program::compile(graph, options_of(a));
  for (size_t i = 0; i < model.inputs.size(); ++i)
    fill(program.input(static_cast<int>(i)), model.inputs[i], i + 1);
  const double items = rate(a.seconds, batch, [&] { program.run(); });
  if (a.profile) print_profile(program, [&] { program.run(); });
  return items;
}

}  // namespace

Action declare_bench(Command& command) {
  auto a = std::make_shared<Arguments>();
  std::string kinds;
  for (const std::string& kind : nn::model_kinds()) kinds += " " + kind;
  command.positional("MODE", a->mode, "train or infer")
      .positional("NAME", a->model, "one of" + kinds)
      .positional("BATCH", a->batch, "items a step")
      .option("--precision", a->precision, "fp32 or bf16 (default fp32)")
      .option("--optimizer", a->optimizer, "sgd (momentum 0.9) or adamw; for train (default adamw)")
      .option("--seconds", a->seconds, "how long to measure, after a warm-up (default 2)")
      .flag("--exact", a->exact, "no algorithm that changes more than the order of sums (Winograd's)")
      .flag("--profile", a->profile, "print the slowest kernels of a step")
      .footer(
          "The last word printed is items per second.\n\n"
          "  millrace bench train resnet18_cifar 128 --optimizer sgd\n"
          "  millrace bench infer resnet18 1 --precision bf16 --profile\n");
  return [a] {
    const int64_t batch = batch_of(*a);
    nn::Model model = nn::make_model(a->model);
    model.module->initialise(0);
    double items = 0;
    if (a->mode == "train")
      items = bench_train(*a, model, batch);
    else if (a->mode == "infer")
      items = bench_infer(*a, model, batch);
    else
      throw InputError(fmt::format("MODE must be train or infer, but it is '{}'", a->mode));
    fmt::print("{} {} {} {} items/s {:.2f}\n", a->mode, a->model, batch, a->precision, items);
    return 0;
  };
}

}  // namespace millrace::cli
