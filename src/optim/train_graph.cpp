// The graph of a training step.
#include <millrace/optim.h>

#include "autodiff/gradient.h"
#include "base/format.h"
#include "ops/build.h"
#include "optim/loss_scale.h"
#include "optim/model_scope.h"
#include "optim/row_gradient.h"
#include "trace/linearise.h"
#include "trace/node.h"

namespace millrace::optim {
namespace {

/// Gradients after clipping by value and by norm; the norm is invalid unless it was needed.
struct Clipped {
  std::vector<Value> gradients;
  Value norm;
};

Clipped clip(Graph& graph, std::vector<Value> gradients, const Options& options) {
  ops::Build b(graph);
  graph.set_location({"clip", Phase::update});
  if (options.clip_value > 0)
    for (Value& g : gradients)
      g = graph.add("clamp", {g}, {{"low", -options.clip_value}, {"high", options.clip_value}});
  if (!(options.clip_norm > 0) || gradients.empty()) return {gradients, {}};
  Value squares;
  for (const Value& g : gradients) {
    const Value part = b.sum(b.mul(g, g), {}, false);
    squares = squares.valid() ? b.add(squares, part) : part;
  }
  const Value norm = b.unary("sqrt", squares);
  const Value limit = b.div(b.scalar(f32, options.clip_norm), b.add(norm, 1e-6));
  const Value factor = b.binary("minimum", limit, b.scalar(f32, 1));
  for (Value& g : gradients) g = b.mul(g, factor);
  return {gradients, norm};
}

/// Index of the group of a parameter; groups.size() when none applies.
size_t group_of(const Options& options, const std::string& name, const Type& type) {
  for (size_t i = 0; i < options.groups.size(); ++i)
    if (options.groups[i].applies(name, type)) return i;
  return options.groups.size();
}

/// Rounds what belongs to one parameter to the dtype that it is stored in. To bf16 stochastically: to the nearest one,
/// updates below 1/256 of a value would be lost, all of those of a second moment with β2 = 0.999 among them.
class Rounder {
 public:
  Rounder(Graph& graph, Value key, int64_t parameter)
      : graph_(graph), key_(key), stream_(kFirstStream + parameter * kStreams) {}
  Value operator()(Value fresh, DType stored) {
    if (graph_.type(fresh).dtype == stored) return fresh;
    const int64_t part = used_++ % kParts;
    if (part == 0)
      bits_ = graph_.add("random_bits", {key_},
                         {{"shape", Shape(graph_.type(fresh).shape)}, {"stream", stream_++}});
    return graph_.add("round_stochastic", {fresh, bits_}, {{"part", part}});
  }

 private:
  // Streams beyond those of the model's own random operators, which count from 0.
  static constexpr int64_t kFirstStream = int64_t{1} << 31, kStreams = 4, kParts = 4;
  Graph& graph_;
  Value key_, bits_;
  int64_t stream_;
  int used_ = 0;
};

/// Collects outputs, and which inputs they replace.
struct Outputs {
  std::vector<Value> values;
  std::vector<std::string> names;
  std::map<int, int> donations;
  void add(Value value, std::string name) {
    values.push_back(value);
    names.push_back(std::move(name));
  }
  void replace(int input, Value value, const std::string& name) {
    donations[static_cast<int>(values.size())] = input;
    add(value, "new " + name);
  }
};

/// Appends the updates of parameters.
struct Updates {
  Graph& graph;
  const Optimizer& optimizer;
  TrainGraph& made;
  Outputs& outputs;
  Value sound;  // whether the step is made
  std::vector<Value> scalars;
  int first_state;  // input

  /// Of the parameter that is input `at`: all of it, or the rows that have a gradient.
  void add(const nn::Named& p, int at, Value gradient, double decay, const std::optional<RowGradient>& rows) {
    ops::Build b(graph);
    const Value old = graph.inputs()[at];
    const Type type = graph.type(old);
    const size_t group = group_of(optimizer.options, p.name, p.tensor->type());
    const auto part_of = [&](Value whole) { return rows ? rows_of(graph, *rows, whole) : whole; };
    graph.set_location({p.name, Phase::update});
    const Value old_part = part_of(old), lr = graph.inputs()[made.data_inputs + static_cast<int>(group)];
    Update update{graph, b.widen(old_part), gradient, lr, decay, scalars, {}};
    std::vector<Value> old_state, old_parts;
    for (const std::string& name : optimizer.state_names()) {
      made.state.push_back(name + "." + p.name);
      old_state.push_back(graph.input(made.state.back(), type));
      old_parts.push_back(part_of(old_state.back()));
      update.state.push_back(b.widen(old_parts.back()));
    }
    const Value fresh = optimizer.update(update);
    Rounder rounded(graph, graph.inputs()[made.key_input()], at - made.first_parameter());
    const auto replace = [&](int input, Value whole, Value part, Value fresh_part, const std::string& name) {
      const Value chosen = b.select(sound, rounded(fresh_part, type.dtype), part);
      outputs.replace(input, rows ? with_rows(graph, *rows, whole, chosen) : chosen, name);
    };
    replace(at, old, old_part, fresh, p.name);
    for (size_t i = 0; i < old_state.size(); ++i) {
      const size_t index = made.state.size() - old_state.size() + i;
      replace(first_state + static_cast<int>(index), old_state[i], old_parts[i], update.state[i],
              made.state[index]);
    }
  }
};

}  // namespace

TrainGraph build_train_graph(nn::Module& model, const std::vector<TensorSpec>& inputs,
                             const StepFunction& function, const Optimizer& optimizer,
                             const LossScaling* scaling) {
  if (scaling) check_scaling(*scaling);
  if (!function) fail<InputError>("a training step needs a function that computes the loss");
  const Options& options = optimizer.options;
  TrainGraph made;
  ModelScope scope(model, true);
  scope.use_symbols();

  std::vector<Tensor> symbols;  // of all inputs but the optimiser's state
  const auto symbol = [&](std::string name, const Type& type) {
    if (!type.shape.is_static())
      fail<TypeError>("input '{}' of a training step has shape {}: give it sizes", name, type.shape.str());
    symbols.push_back(Tensor::symbol(std::move(name), type));
  };
  for (const TensorSpec& spec : inputs) symbol(spec.name, spec.type);
  made.data_inputs = static_cast<int>(inputs.size());
  made.lr_inputs = static_cast<int>(options.groups.size()) + 1;
  for (int i = 0; i < made.lr_inputs; ++i) symbol(fmt::format("lr.{}", i), {f32, {}});
  made.scalar_inputs = static_cast<int>(optimizer.scalars(1).size());
  for (int i = 0; i < made.scalar_inputs; ++i) symbol(fmt::format("scalar.{}", i), {f32, {}});
  symbol("key", {i64, {2}});
  const Tensor key = symbols.back();

  StepResult result;
  {
    const trace::RandomScope random(key);
    result = function(model, std::span(symbols).first(inputs.size()));
  }
  if (!result.loss.defined() || result.loss.shape().count() != 1)
    fail<TypeError>("the loss must be a scalar{}",
                    result.loss.defined() ? fmt::format(", but it is {}", result.loss.type().str()) : "");
  symbols.insert(symbols.end(), scope.stand_ins().begin(), scope.stand_ins().end());

  std::vector<Tensor> wanted = {reshape(cast(result.loss, f32), {})};
  for (const auto& [name, tensor] : result.metrics) {
    if (!tensor.defined() || tensor.shape().count() != 1)
      fail<TypeError>("the metric '{}' must be a scalar{}", name,
                      tensor.defined() ? fmt::format(", but it is {}", tensor.type().str()) : "");
    wanted.push_back(reshape(cast(tensor, f32), {}));
    made.metrics.push_back(name);
  }
  for (const nn::Named& buffer : scope.buffers()) wanted.push_back(*buffer.tensor);
  trace::Captured captured = scope.as_stored(trace::capture(symbols, wanted), made.first_parameter());
  Graph& graph = captured.graph;
  const auto value_of_tensor = [&](const Tensor& tensor) {
    return captured.values.at({tensor.node().get(), tensor.output()});
  };

  std::vector<Value> trainable;
  std::vector<double> decays;
  for (const nn::Named& p : scope.parameters()) {
    made.parameters.push_back(p.name);
    if (!p.trainable) continue;
    trainable.push_back(value_of_tensor(*p.tensor));
    const size_t group = group_of(options, p.name, p.tensor->type());
    decays.push_back(group < options.groups.size()
                         ? options.groups[group].weight_decay.value_or(options.weight_decay)
                         : options.weight_decay);
  }
  const Value loss = value_of_tensor(wanted[0]);
  ops::Build b(graph);
  const int first_state = made.first_parameter() + static_cast<int>(scope.stand_ins().size());
  ScaleState scale;
  if (scaling) {
    made.scales_loss = true;
    made.state = {"loss_scale", "good_steps", "skipped_steps"};
    scale = {graph.input(made.state[0], {f32, {}}), graph.input(made.state[1], {i64, {}}),
             graph.input(made.state[2], {i64, {}})};
  }
  std::vector<Value> all_gradients = gradients(graph, scaling ? b.mul(loss, scale.scale) : loss, trainable);
  // Tables keep their gradient as rows where that is enough; clipping sees each row once.
  std::vector<std::optional<RowGradient>> by_rows(trainable.size());
  graph.set_location({"rows", Phase::update});
  for (size_t i = 0; i < trainable.size(); ++i)
    if (optimizer.rows_suffice(decays[i]) && (options.lazy || few_rows(graph, all_gradients[i])))
      if (by_rows[i] = row_gradient(graph, all_gradients[i]); by_rows[i])
        all_gradients[i] = by_rows[i]->values;
  graph.set_location({"update", Phase::update});
  Value sound = b.unary("is_finite", loss);
  if (scaling) {
    all_gradients = unscaled(graph, std::move(all_gradients), scale.scale);
    sound = b.binary("logical_and", sound, all_finite(graph, all_gradients));
  }
  const Clipped clipped = clip(graph, std::move(all_gradients), options);

  Outputs outputs;
  outputs.add(loss, "loss");
  for (size_t i = 0; i < made.metrics.size(); ++i)
    outputs.add(value_of_tensor(wanted[i + 1]), made.metrics[i]);
  if (clipped.norm.valid()) {
    made.metrics.push_back("grad_norm");
    outputs.add(clipped.norm, "grad_norm");
  }
  graph.set_location({"update", Phase::update});
  if (scaling) {
    made.metrics.push_back("loss_scale");
    outputs.add(scale.scale, "loss_scale");
    const ScaleState next = next_scale(graph, scale, sound, *scaling);
    outputs.replace(first_state, next.scale, made.state[0]);
    outputs.replace(first_state + 1, next.good, made.state[1]);
    outputs.replace(first_state + 2, next.skipped, made.state[2]);
  }
  if (clipped.norm.valid()) sound = b.binary("logical_and", sound, b.unary("is_finite", clipped.norm));
  std::vector<Value> scalars;
  for (int i = 0; i < made.scalar_inputs; ++i)
    scalars.push_back(graph.inputs()[made.data_inputs + made.lr_inputs + i]);
  Updates updates{graph, optimizer, made, outputs, sound, std::move(scalars), first_state};
  int position = made.first_parameter();
  size_t next = 0;
  for (const nn::Named& p : scope.parameters()) {
    const int at = position++;
    if (!p.trainable) continue;
    updates.add(p, at, clipped.gradients[next], decays[next], by_rows[next]);
    ++next;
  }
  for (size_t i = 0; i < scope.buffers().size(); ++i) {
    const nn::Named& buffer = scope.buffers()[i];
    made.buffers.push_back(buffer.name);
    const int at = position++;
    const Value fresh = value_of_tensor(*buffer.tensor), old = graph.inputs()[at];
    if (fresh != old) outputs.replace(at, b.select(sound, fresh, old), buffer.name);
  }
  graph.set_location("");
  made.donations = outputs.donations;
  graph.set_outputs(std::move(outputs.values), std::move(outputs.names));
  made.graph = std::move(graph);
  return made;
}

Graph build_eval_graph(nn::Module& model, const std::vector<TensorSpec>& inputs, const EvalFunction& function,
                       bool parameters_as_inputs) {
  if (!function) fail<InputError>("an evaluation needs a function");
  ModelScope scope(model, false);
  parameters_as_inputs ? scope.use_symbols() : scope.use_constants();
  std::vector<Tensor> symbols;
  for (const TensorSpec& spec : inputs) symbols.push_back(Tensor::symbol(spec.name, spec.type));
  const std::vector<NamedTensor> results = function(model, symbols);
  if (parameters_as_inputs) symbols.insert(symbols.end(), scope.stand_ins().begin(), scope.stand_ins().end());
  std::vector<Tensor> wanted;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : results) {
    names.push_back(name);
    wanted.push_back(tensor);
  }
  trace::Captured captured = trace::capture(symbols, wanted);
  if (parameters_as_inputs) captured = scope.as_stored(std::move(captured), static_cast<int>(inputs.size()));
  std::vector<Value> outputs;
  for (const Tensor& tensor : wanted)
    outputs.push_back(captured.values.at({tensor.node().get(), tensor.output()}));
  captured.graph.set_location("");
  captured.graph.set_outputs(std::move(outputs), std::move(names));
  return std::move(captured.graph);
}

}  // namespace millrace::optim
