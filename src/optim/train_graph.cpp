// The graph of a training step.
#include <millrace/optim.h>

#include "autodiff/gradient.h"
#include "base/format.h"
#include "ops/build.h"
#include "optim/accumulate.h"
#include "optim/ascend.h"
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

/// `norm`: whether it is wanted where nothing is clipped by it.
Clipped clip(Graph& graph, std::vector<Value> gradients, const Options& options, bool norm_wanted) {
  ops::Build b(graph);
  graph.set_origin({"clip", Phase::update});
  if (options.clip_value > 0)
    for (Value& g : gradients)
      g = graph.add("clamp", {g}, {{"low", -options.clip_value}, {"high", options.clip_value}});
  const bool clips = options.clip_norm > 0;
  if (!(clips || norm_wanted) || gradients.empty()) return {gradients, {}};
  Value squares;
  for (const Value& g : gradients) {
    const Value part = b.sum(b.mul(g, g), {}, false);
    squares = squares.valid() ? b.add(squares, part) : part;
  }
  const Value norm = b.unary("sqrt", squares);
  if (!clips) return {gradients, norm};
  const Value limit = b.div(b.scalar(f32, options.clip_norm), b.add(norm, 1e-6));
  const Value factor = b.binary("minimum", limit, b.scalar(f32, 1));
  for (Value& g : gradients) g = b.mul(g, factor);
  return {gradients, norm};
}

/// A parameter that is trained.
struct Trained {
  std::string name;
  int input;
  size_t group;  // groups.size() when none applies
  double decay;
};

/// `input`: which the first of all parameters is.
std::vector<Trained> trained_of(const ModelScope& scope, const Options& options, int input) {
  std::vector<Trained> all;
  for (const nn::Named& p : scope.parameters()) {
    const int own = input++;
    if (!p.trainable) continue;
    size_t group = 0;
    while (group < options.groups.size() && !options.groups[group].applies(p.name, p.tensor->type())) ++group;
    all.push_back({p.name, own, group,
                   group < options.groups.size()
                       ? options.groups[group].weight_decay.value_or(options.weight_decay)
                       : options.weight_decay});
  }
  return all;
}

/// Rounds what belongs to one parameter to the dtype that it is stored in. To bf16 stochastically: to the
/// nearest one, updates below 1/256 of a value would be lost, all of those of a second moment with β2 = 0.999
/// among them.
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
  bool norms;
  Value sound;  // whether the step is made
  std::vector<Value> scalars;
  std::vector<Value> squares = {};  // TrainGraph::normed

  /// The moving average of what becomes `fresh`.
  void average(const std::string& name, Value fresh) {
    ops::Build b(graph);
    graph.set_origin({name, Phase::update});
    made.state.push_back("ema." + name);
    const Value old = graph.input(made.state.back(), {f32, b.shape(fresh)});
    const Value moved = b.add(old, b.mul(b.sub(b.widen(fresh), old), scalars.back()));
    outputs.replace(static_cast<int>(graph.inputs().size()) - 1, b.select(sound, moved, old),
                    made.state.back());
  }

  /// Of a parameter: all of it, or the rows that have a gradient. The new one. `raw`: the gradient before
  /// clipping.
  Value add(const Trained& p, Value gradient, Value raw, const std::optional<RowGradient>& rows) {
    ops::Build b(graph);
    const Value old = graph.inputs()[p.input];
    const Type type = graph.type(old);
    const auto part_of = [&](Value whole) { return rows ? rows_of(graph, *rows, whole) : whole; };
    graph.set_origin({p.name, Phase::update});
    const Value old_part = part_of(old), lr = graph.inputs()[made.data_inputs + static_cast<int>(p.group)];
    Update update{graph, b.widen(old_part), gradient, lr, p.decay, scalars, {}, p.name};
    std::vector<Value> old_state, old_parts;
    for (const StateArray& kept : optimizer.state_of(p.name, type)) {
      made.state.push_back(kept.name + "." + p.name);
      old_state.push_back(graph.input(made.state.back(), kept.type));
      old_parts.push_back(part_of(old_state.back()));
      update.state.push_back(b.widen(old_parts.back()));
    }
    const Value fresh = optimizer.update(update);
    Rounder rounded(graph, graph.inputs()[made.key_input()], p.input - made.first_parameter());
    Value chosen;
    const auto replace = [&](int input, Value whole, Value part, Value fresh_part, const std::string& name) {
      chosen = b.select(sound, rounded(fresh_part, graph.type(whole).dtype), part);
      outputs.replace(input, rows ? with_rows(graph, *rows, whole, chosen) : chosen, name);
      return outputs.values.back();
    };
    const Value whole = replace(p.input, old, old_part, fresh, p.name);
    if (norms) {
      made.normed.push_back(p.name);
      const Value before = b.widen(old_part);
      for (const Value part : {b.widen(raw), before, b.sub(b.widen(chosen), before)})
        squares.push_back(b.sum(b.mul(part, part), {}, false));
    }
    for (size_t i = 0; i < old_state.size(); ++i) {
      const size_t index = made.state.size() - old_state.size() + i;
      replace(made.first_state() + static_cast<int>(index), old_state[i], old_parts[i], update.state[i],
              made.state[index]);
    }
    return whole;
  }
};

/// Symbols of all inputs before parameters; says in `made` how many of each kind there are.
std::vector<Tensor> declare_inputs(const std::vector<TensorSpec>& data, const Optimizer& optimizer,
                                   TrainGraph& made) {
  std::vector<Tensor> symbols;
  for (const TensorSpec& spec : data) symbols.push_back(Tensor::symbol(spec.name, spec.type));
  made.data_inputs = static_cast<int>(data.size());
  made.lr_inputs = static_cast<int>(optimizer.options.groups.size()) + 1;
  for (int i = 0; i < made.lr_inputs; ++i)
    symbols.push_back(Tensor::symbol(fmt::format("lr.{}", i), {f32, {}}));
  made.scalar_inputs =
      static_cast<int>(optimizer.scalars(1).size()) + (made.guard ? 1 : 0) + (made.averages ? 1 : 0);
  for (int i = 0; i < made.scalar_inputs; ++i)
    symbols.push_back(Tensor::symbol(fmt::format("scalar.{}", i), {f32, {}}));
  symbols.push_back(Tensor::symbol("key", {i64, {2}}));
  return symbols;
}

/// Loss and metrics as f32 scalars.
std::vector<Tensor> scalars_of(const StepResult& result, TrainGraph& made) {
  if (!result.loss.defined() || result.loss.shape().count() != 1)
    fail<TypeError>("the loss must be a scalar{}",
                    result.loss.defined() ? fmt::format(", but it is {}", result.loss.type().str()) : "");
  std::vector<Tensor> scalars = {reshape(cast(result.loss, f32), {})};
  for (const auto& [name, tensor] : result.metrics) {
    if (!tensor.defined() || tensor.shape().count() != 1)
      fail<TypeError>("the metric '{}' must be a scalar{}", name,
                      tensor.defined() ? fmt::format(", but it is {}", tensor.type().str()) : "");
    scalars.push_back(reshape(cast(tensor, f32), {}));
    made.metrics.push_back(name);
  }
  return scalars;
}

/// The inputs of loss scaling.
ScaleState scale_state(const Graph& graph, const TrainGraph& made) {
  return {graph.inputs()[made.first_state()], graph.inputs()[made.first_state() + 1],
          graph.inputs()[made.first_state() + 2]};
}

/// Runs `function` on symbols, and appends the backward pass, of a loss divided by the number of parts, and
/// scaled when the step does so.
Differentiated differentiate(nn::Module& model, ModelScope& scope, const std::vector<TensorSpec>& data,
                             const StepFunction& function, const Optimizer& optimizer, int64_t parts,
                             TrainGraph& made) {
  scope.use_symbols();
  std::vector<Tensor> symbols = declare_inputs(data, optimizer, made);
  StepResult result;
  {
    const trace::RandomScope random(symbols.back());
    result = function(model, std::span(symbols).first(data.size()));
  }
  std::vector<Tensor> wanted = scalars_of(result, made);
  const size_t scalars = wanted.size();
  symbols.insert(symbols.end(), scope.stand_ins().begin(), scope.stand_ins().end());
  for (const nn::Named& buffer : scope.buffers()) wanted.push_back(*buffer.tensor);
  trace::Captured captured = scope.as_stored(trace::capture(symbols, wanted), made.first_parameter());
  std::vector<Value> trainable;
  for (const nn::Named& p : scope.parameters())
    if (p.trainable) trainable.push_back(captured.value_of(*p.tensor));
  Differentiated all;
  all.means = captured.values_of(std::span(wanted).first(scalars));
  all.buffers = captured.values_of(std::span(wanted).subspan(scalars));
  all.graph = std::move(captured.graph);
  ops::Build b(all.graph);
  Value loss = all.means[0];
  if (made.scales_loss) {
    all.graph.input(made.state[0], {f32, {}});
    for (const size_t i : {1, 2}) all.graph.input(made.state[i], {i64, {}});
  }
  if (parts > 1) loss = b.mul(loss, 1.0 / static_cast<double>(parts));
  if (made.scales_loss) loss = b.mul(loss, scale_state(all.graph, made).scale);
  all.gradients = gradients(all.graph, loss, trainable);
  return all;
}

/// Appends clipping and the updates, and names the outputs.
void append_update(Differentiated step, const ModelScope& scope, const std::vector<Trained>& trained,
                   const Optimizer& optimizer, const LossScaling* scaling, bool norms, TrainGraph& made) {
  Graph& graph = step.graph;
  ops::Build b(graph);
  const Options& options = optimizer.options;
  // Tables keep their gradient as rows where that is enough; clipping sees each row once.
  std::vector<std::optional<RowGradient>> by_rows(step.gradients.size());
  graph.set_origin({"rows", Phase::update});
  for (size_t i = 0; i < by_rows.size(); ++i)
    if (optimizer.rows_suffice(trained[i].decay) && (options.lazy || few_rows(graph, step.gradients[i])))
      if (by_rows[i] = row_gradient(graph, step.gradients[i]); by_rows[i])
        step.gradients[i] = by_rows[i]->values;
  graph.set_origin({"update", Phase::update});
  std::vector<Value> scalars;
  for (int i = 0; i < made.scalar_inputs; ++i)
    scalars.push_back(graph.inputs()[made.data_inputs + made.lr_inputs + i]);
  Value finite = b.unary("is_finite", step.means[0]);
  ScaleState scale;
  if (scaling) {
    scale = scale_state(graph, made);
    step.gradients = unscaled(graph, std::move(step.gradients), scale.scale);
    finite = b.binary("logical_and", finite, all_finite(graph, step.gradients));
  }
  const Clipped clipped = clip(graph, step.gradients, options, made.guard);
  graph.set_origin({"update", Phase::update});
  Value sound = finite;
  if (made.guard) {
    const Value limit = scalars[scalars.size() - (made.averages ? 2 : 1)];
    sound = b.binary("logical_and", sound, b.binary("less_equal", step.means[0], limit));
  }
  if (clipped.norm.valid()) sound = b.binary("logical_and", sound, b.unary("is_finite", clipped.norm));

  Outputs outputs;
  outputs.add(step.means[0], "loss");
  for (size_t i = 0; i < made.metrics.size(); ++i) outputs.add(step.means[i + 1], made.metrics[i]);
  if (clipped.norm.valid()) {
    made.metrics.push_back("grad_norm");
    outputs.add(clipped.norm, "grad_norm");
  }
  graph.set_origin({"update", Phase::update});
  if (scaling) {
    made.metrics.push_back("loss_scale");
    outputs.add(scale.scale, "loss_scale");
    const ScaleState next = next_scale(graph, scale, finite, sound, *scaling);
    outputs.replace(made.first_state(), next.scale, made.state[0]);
    outputs.replace(made.first_state() + 1, next.good, made.state[1]);
    outputs.replace(made.first_state() + 2, next.skipped, made.state[2]);
  }
  Updates updates{graph, optimizer, made, outputs, norms, sound, std::move(scalars)};
  std::vector<std::pair<std::string, Value>> moved;
  for (size_t i = 0; i < trained.size(); ++i)
    moved.emplace_back(trained[i].name,
                       updates.add(trained[i], clipped.gradients[i], step.gradients[i], by_rows[i]));
  for (size_t i = 0; i < scope.buffers().size(); ++i) {
    const int at = made.first_buffer() + static_cast<int>(i);
    const Value fresh = step.buffers[i], old = graph.inputs()[at];
    if (fresh == old) continue;
    outputs.replace(at, b.select(sound, fresh, old), scope.buffers()[i].name);
    if (b.dtype(fresh) == f32) moved.emplace_back(scope.buffers()[i].name, outputs.values.back());
  }
  if (made.averages)
    for (const auto& [name, fresh] : moved) updates.average(name, fresh);
  for (const Value square : updates.squares) outputs.add(square, "squares");
  graph.set_origin("");
  made.donations = outputs.donations;
  graph.set_outputs(std::move(outputs.values), std::move(outputs.names));
  made.graph = std::move(graph);
}

}  // namespace

TrainGraph build_train_graph(nn::Module& model, const std::vector<TensorSpec>& inputs,
                             const StepFunction& function, const Optimizer& optimizer,
                             const LossScaling* scaling, int64_t parts, const StepExtras& extras) {
  if (scaling) check_scaling(*scaling);
  if (!function) fail<InputError>("a training step needs a function that computes the loss");
  const std::vector<TensorSpec> data = part_inputs(inputs, parts);
  TrainGraph made;
  made.averages = extras.averages;
  made.guard = extras.guard;
  ModelScope scope(model, true);
  for (const nn::Named& p : scope.parameters()) made.parameters.push_back(p.name);
  for (const nn::Named& buffer : scope.buffers()) made.buffers.push_back(buffer.name);
  if (scaling) {
    made.scales_loss = true;
    made.state = {"loss_scale", "good_steps", "skipped_steps"};
  }
  Differentiated step = differentiate(model, scope, data, function, optimizer, parts, made);
  if (parts > 1)
    step = accumulate(step, parts, {made.data_inputs, made.key_input(), made.first_buffer()}, inputs);
  const std::vector<Trained> trained = trained_of(scope, optimizer.options, made.first_parameter());
  if (optimizer.ascent() > 0) {
    std::vector<int> places;
    for (const Trained& p : trained) places.push_back(p.input);
    step = ascended(step, optimizer.ascent(), places);
  }
  append_update(std::move(step), scope, trained, optimizer, scaling, extras.norms, made);
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
  captured.graph.set_origin("");
  captured.graph.set_outputs(captured.values_of(wanted), std::move(names));
  return std::move(captured.graph);
}

}  // namespace millrace::optim
