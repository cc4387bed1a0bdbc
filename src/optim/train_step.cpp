#include <algorithm>
#include <cmath>

#include <millrace/operator.h>
#include <millrace/optim.h>

#include "base/format.h"
#include "ops/body.h"
#include "ops/build.h"
#include "optim/loss_scale.h"
#include "optim/model_scope.h"

namespace millrace::optim {
namespace {

template <typename T>
std::shared_ptr<T> given(std::shared_ptr<T> part, std::string_view what) {
  if (!part) fail<InputError>("a training step needs {}", what);
  return part;
}

/// The model, its parameters in what the precision stores them in.
std::shared_ptr<nn::Module> stored(std::shared_ptr<nn::Module> model, const CompileOptions& options) {
  if (options.precision == "bf16-pure") model->store_parameters(bf16);
  return model;
}

/// The optimiser's state, zero at first, except the loss scale and averages, which are what they are of.
std::vector<Array> fresh_state(const TrainGraph& made, const LossScaling& scaling, nn::Module& model) {
  std::vector<Array> state;
  for (size_t i = 0; i < made.state.size(); ++i)
    state.emplace_back(made.graph.type(made.graph.inputs()[static_cast<size_t>(made.first_state()) + i]));
  if (made.scales_loss) state[0].set(0, scaling.initial);
  if (made.averages)
    for (const nn::Named& named : tensors_of(model)) {
      const auto at = std::find(made.state.begin(), made.state.end(), "ema." + named.name);
      if (at != made.state.end())
        state[static_cast<size_t>(at - made.state.begin())] = value_of(named).converted(f32).clone();
    }
  return state;
}

/// The state of another step of the same model and optimiser; the arrays share their memory.
std::vector<Array> shared_state(const TrainGraph& made, const TrainStep& other) {
  std::vector<Array> state;
  for (const auto& [name, array] : other.state()) {
    const size_t i = state.size();
    if (i >= made.state.size() || made.state[i] != name)
      fail<InternalError>("two steps of one model have different state: '{}'", name);
    state.push_back(array);
  }
  return state;
}

/// Options with the graph's donations, and the memory of parameters, buffers and state.
CompileOptions prepared(CompileOptions options, const TrainGraph& made, nn::Module& model,
                        const std::vector<Array>& state, const Program* other) {
  options.donations = made.donations;
  options.share_copies = other;
  int at = made.first_parameter();
  for (const nn::Named& named : tensors_of(model)) options.inputs[at++] = value_of(named);
  for (const Array& array : state) options.inputs[at++] = array;
  return options;
}

double checked_ema(double decay) {
  if (!(decay >= 0 && decay < 1))
    fail<InputError>("the decay of a moving average is from 0 on and below 1, not {}", decay);
  return decay;
}

}  // namespace

TrainStep::TrainStep(std::shared_ptr<nn::Module> model, const std::vector<TensorSpec>& inputs,
                     const StepFunction& function, std::shared_ptr<const Optimizer> optimizer,
                     const TrainOptions& options)
    : model_(stored(given(std::move(model), "a model"), options.compile)),
      optimizer_(given(std::move(optimizer), "an optimiser")),
      options_(options),
      made_(build_train_graph(*model_, inputs, function, *optimizer_,
                              options.compile.precision == "fp16" ? &options.loss_scaling : nullptr,
                              options.accumulate,
                              {checked_ema(options.ema) > 0, options.guard, options.norms})),
      state_(options.share ? shared_state(made_, *options.share)
                           : fresh_state(made_, options.loss_scaling, *model_)),
      program_(Program::compile(made_.graph, prepared(options.compile, made_, *model_, state_,
                                                      options.share ? &options.share->program() : nullptr))) {
}

// A tensor that was given another value has another node; all else stays bound.
void TrainStep::bind_model() {
  if (tensors_.empty()) tensors_ = tensors_of(*model_);
  bound_.resize(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = *tensors_[i].tensor;
    if (bound_[i].defined() && bound_[i].node() == tensor.node()) continue;
    Array array = value_of(tensors_[i]);
    const int at = made_.first_parameter() + static_cast<int>(i);
    if (!program_.input(at).shares_memory(array)) program_.bind_input(at, std::move(array));
    bound_[i] = tensor;
  }
}

int64_t TrainStep::updates() const {
  return step_ - left_out_ - (made_.scales_loss ? state_[2].int_at(0) : 0);
}

std::vector<double> TrainStep::group_rates(double lr) const {
  std::vector<double> lrs;
  for (const Group& group : optimizer_->options.groups) lrs.push_back(lr * group.lr_scale);
  lrs.push_back(lr);
  return lrs;
}

void TrainStep::prepare(std::span<const double> lrs) {
  if (lrs.size() != static_cast<size_t>(made_.lr_inputs))
    fail<InputError>("{} learning rates are given for {} groups", lrs.size(), made_.lr_inputs);
  for (const double lr : lrs)
    if (!std::isfinite(lr)) fail<InputError>("the learning rate of step {} is {}", step_ + 1, lr);
  bind_model();
  int at = made_.data_inputs;
  for (const double lr : lrs) program_.input(at++).set(0, lr);
  for (const double scalar : optimizer_->scalars(updates() + 1)) program_.input(at++).set(0, scalar);
  // The largest number stands for no limit: what is finite is not above it.
  if (made_.guard)
    program_.input(at++).set(0, std::min(loss_limit_, double{std::numeric_limits<float>::max()}));
  // All weights up to a step together are 1, so that the first one's are the parameters as they are.
  if (made_.averages)
    program_.input(at++).set(
        0, (1 - options_.ema) / (1 - std::pow(options_.ema, static_cast<double>(updates() + 1))));
  program_.input(at).set_int(0, static_cast<int64_t>(options_.seed));
  program_.input(at).set_int(1, step_);
}

void TrainStep::run(double lr) { run(group_rates(lr)); }

void TrainStep::run(std::span<const double> lrs) {
  prepare(lrs);
  run_program();
}

void TrainStep::run_program() {
  program_.run();
  ++step_;
  if (!made_.scales_loss && !within_limits()) ++left_out_;
}

void TrainStep::set_step(int64_t step, int64_t left_out) {
  if (step < 0 || left_out < 0 || left_out > step)
    fail<InputError>("the number of steps done cannot be {}, {} of them left out", step, left_out);
  step_ = step;
  left_out_ = left_out;
}

double TrainStep::loss() const { return program_.output(0).at(0); }

std::vector<std::pair<std::string, double>> TrainStep::metrics() const {
  std::vector<std::pair<std::string, double>> values;
  for (size_t i = 0; i < made_.metrics.size(); ++i)
    values.emplace_back(made_.metrics[i], program_.output(static_cast<int>(i) + 1).at(0));
  return values;
}

std::vector<NamedArray> TrainStep::state() const {
  std::vector<NamedArray> named;
  for (size_t i = 0; i < state_.size(); ++i) named.emplace_back(made_.state[i], state_[i]);
  return named;
}

bool TrainStep::within_limits() const {
  if (!std::isfinite(loss()) || (made_.guard && loss() > static_cast<float>(loss_limit_))) return false;
  const auto norm = std::find(made_.metrics.begin(), made_.metrics.end(), "grad_norm");
  return norm == made_.metrics.end() ||
         std::isfinite(program_.output(static_cast<int>(norm - made_.metrics.begin()) + 1).at(0));
}

bool TrainStep::sound() const {
  if (made_.scales_loss && std::isfinite(loss()) && loss() <= static_cast<float>(loss_limit_)) {
    const double used = metrics().back().second;
    const bool skipped = state_[0].at(0) < used;
    if (skipped) return used > kLeastLossScale;
  }
  return within_limits();
}

std::vector<ParameterNorms> TrainStep::norms() const {
  std::vector<ParameterNorms> list;
  int at = static_cast<int>(made_.graph.outputs().size() - 3 * made_.normed.size());
  const auto next = [&] { return std::sqrt(program_.output(at++).at(0)); };
  for (const std::string& name : made_.normed) {
    const double gradient = next(), weight = next();
    list.push_back({name, gradient, weight, next()});
  }
  return list;
}

/// What is told of inputs begins with it: only where nothing else is to blame.
static constexpr std::string_view kGiven = "input '";

std::string TrainStep::find_non_finite() const {
  const Graph& graph = made_.graph;
  const std::string found =
      first_non_finite(ops::needed_by(graph, {graph.outputs()[0]}));  // the loss's nodes
  if (!found.empty() && !found.starts_with(kGiven)) return found;
  return first_non_finite(std::vector<char>(static_cast<size_t>(graph.size()), 1));
}

// Runs the chosen nodes again, with the largest magnitude of every float result: infinite or NaN when an
// element is.
std::string TrainStep::first_non_finite(const std::vector<char>& needed) const {
  const Graph& graph = made_.graph;
  const int count = static_cast<int>(needed.size());
  Rewriter rewrite(graph);
  rewrite.copy_inputs();
  for (int i = 0; i < count; ++i)
    if (needed[i] && !rewrite.has({i, 0})) rewrite.copy(i);
  Graph& probe = rewrite.graph();
  probe.set_origin("");
  ops::Build b(probe);
  std::vector<Value> outputs;
  std::vector<int> nodes;
  for (int i = 0; i < count; ++i) {
    if (!needed[i]) continue;
    for (size_t r = 0; r < graph.node(i).types.size(); ++r) {
      const Value value{i, static_cast<int32_t>(r)};
      if (!graph.type(value).dtype.is_float() || graph.type(value).shape.count() == 0) continue;
      outputs.push_back(b.max(b.unary("abs", rewrite[value]), {}, false));
      nodes.push_back(i);
    }
  }
  probe.set_outputs(std::move(outputs));
  CompileOptions options;
  options.target = options_.compile.target;
  if (made_.scales_loss) options.precision = "fp16";  // what is too large for f16 is infinite there only
  Program program = Program::compile(probe, options);
  for (int i = 0; i < program.input_count(); ++i)
    program.bind_input(i, const_cast<Program&>(program_).input(i));
  program.run();
  std::string inputs;
  std::vector<char> finite(static_cast<size_t>(count), 1);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const double largest = program.output(static_cast<int>(i)).at(0);
    if (std::isfinite(largest)) continue;
    finite[static_cast<size_t>(nodes[i])] = 0;
    const Node& node = graph.node(nodes[i]);
    const std::string what = std::isnan(largest) ? "NaN" : "infinite";
    if (node.op->op_class == OpClass::input) {
      const auto at = std::find(graph.inputs().begin(), graph.inputs().end(), Value{nodes[i], 0});
      const auto k = at - graph.inputs().begin();
      const std::string& name = graph.input_names()[static_cast<size_t>(k)];
      if (k >= made_.first_parameter()) return fmt::format("parameter '{}' has {} values", name, what);
      // It may be meant so: a missing cell of a table is NaN, and the model knows.
      inputs += fmt::format("{}{}{}' has {} values", inputs.empty() ? "" : ", ", kGiven, name, what);
      continue;
    }
    const bool given = std::any_of(node.operands.begin(), node.operands.end(), [&](const Value& operand) {
      return finite[static_cast<size_t>(operand.node)] == 0;
    });
    if (given) continue;
    // What stands in no layer has the place of the call: a loss's.
    const bool in_layer = !node.origin.empty() && !node.origin.call;
    return fmt::format("{}{} made {} values ({})", node.op->name,
                       in_layer              ? fmt::format(" in layer '{}'", node.origin.str())
                       : node.origin.empty() ? ""
                                             : " in the loss",
                       what, node.types[0].str());
  }
  return inputs;
}

}  // namespace millrace::optim
