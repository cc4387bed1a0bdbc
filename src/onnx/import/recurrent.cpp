#include <algorithm>
#include <functional>
#include <memory>

#include "base/format.h"
#include "base/words.h"
#include "onnx/import/call.h"
#include "ops/scan.h"

using namespace millrace;
using onnx::Ints;

// RNN, GRU and LSTM: a scan for each direction.
namespace {

struct Layer {
  int64_t steps, batch, hidden, directions;
  bool batch_first;
};

std::vector<std::string> activations_of(const onnx::ImportCall& call) {
  return call.has("activations") ? call.attribute("activations").texts : std::vector<std::string>{};
}

/// `gates`: how many products of the width of the state there are; `activations` of each direction.
Layer layer_of(onnx::ImportCall& call, int64_t gates, size_t activations) {
  if (call.rank(0) != 3 || call.rank(2) != 3)
    call.refuse("its input or weights have another number of dimensions than 3");
  const bool batch_first = call.integer("layout", 0) != 0;
  const Ints s = call.shape(0).sizes();
  const std::string direction = call.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    call.refuse("the direction " + direction + " is not known");
  const int64_t h = call.shape(2)[2].size(), d = direction == "bidirectional" ? 2 : 1;
  Layer layer{s[batch_first ? 1 : 0], s[batch_first ? 0 : 1], h, d, batch_first};
  if (layer.steps < 1) call.refuse("it has no steps");
  const auto need = [&](int k, const char* what, const Shape& shape) {
    if (call.given(k) && call.shape(k) != shape)
      call.refuse(fmt::format("its {} are {}, not {}", what, call.shape(k).str(), shape.str()));
  };
  const Shape state = batch_first ? Shape{layer.batch, d, h} : Shape{d, layer.batch, h};
  need(1, "weights of the input", {d, gates * h, s[2]});
  need(2, "weights of the state", {d, gates * h, h});
  need(3, "biases", {d, 2 * gates * h});
  need(4, "lengths", {layer.batch});
  need(5, "first states", state);
  need(6, "first cells", state);
  need(7, "peepholes", {d, 3 * h});
  if (call.integer("hidden_size", h) != h) call.refuse("its weights have another width than its states");
  const size_t named = activations_of(call).size(), wanted = activations * static_cast<size_t>(d);
  if (named != 0 && named != wanted) call.refuse(fmt::format("it has {} activations, not {}", named, wanted));
  return layer;
}

/// Rows from…to of direction d of an operand [directions, rows, …].
Value part(onnx::ImportCall& call, Value x, int64_t d, int64_t from, int64_t to) {
  Ints starts(call.b.shape(x).size(), 0), ends = call.b.shape(x).sizes();
  starts[0] = d;
  ends[0] = d + 1;
  starts[1] = from;
  ends[1] = to;
  const Value rows = call.graph.add("slice", {x}, {{"starts", starts}, {"ends", ends}});
  Shape shape = call.b.shape(rows);
  shape.erase(shape.begin());
  return call.b.reshape(rows, shape);
}

/// A function that a layer may name, and which numbers it takes; where the layer gives none, it has those of
/// ONNX's operator (1 and 0 for Affine, 1 and 1 for ScaledTanh, which are none).
struct Function {
  std::string_view name;
  bool alpha = false, beta = false;
};
constexpr Function kFunctions[] = {{"Relu"},
                                   {"Tanh"},
                                   {"Sigmoid"},
                                   {"Softsign"},
                                   {"Softplus"},
                                   {"Affine", true, true},
                                   {"LeakyRelu", true},
                                   {"ThresholdedRelu", true},
                                   {"ScaledTanh", true, true},
                                   {"HardSigmoid", true, true},
                                   {"Elu", true}};

/// Names are written in any case of letters.
const Function& function_named(onnx::ImportCall& call, const std::string& name) {
  for (const Function& each : kFunctions)
    if (lower_case(std::string(each.name)) == lower_case(name)) return each;
  call.refuse("the activation " + name + " is not known");
}

/// What an operator of ONNX with alpha and beta gives of x.
Value by_operator(onnx::ImportCall& call, const Function& function, Value x,
                  const std::vector<onnx::AttributeProto>& numbers) {
  onnx::NodeProto node;
  node.op_type = function.name;
  node.attributes = numbers;
  onnx::ImportCall one(node, call.opset, call.graph, {x}, call.folder, call.nested);
  return onnx::find_import_rule(function.name)->run(one).at(0).value;
}

/// Activation `at` of the layer's; `fallback` where it names none.
Value activation(onnx::ImportCall& call, Value x, size_t at, const char* fallback) {
  const std::vector<std::string> names = activations_of(call);
  const Function& function = function_named(call, names.empty() ? fallback : names.at(at));
  // Numbers go to the functions that take one, in their order.
  size_t alphas = 0, betas = 0;
  for (size_t i = 0; i < std::min(at, names.size()); ++i) {
    const Function& earlier = function_named(call, names[i]);
    alphas += earlier.alpha ? 1 : 0;
    betas += earlier.beta ? 1 : 0;
  }
  std::vector<onnx::AttributeProto> numbers;
  const auto given = [&](const char* list, size_t place, const char* name, double standard) {
    const std::vector<double> all = call.numbers(list, std::vector<double>{});
    if (place >= all.size()) return standard;
    onnx::AttributeProto& number = numbers.emplace_back();
    number.name = name;
    number.number = static_cast<float>(all[place]);
    return all[place];
  };
  const double alpha = function.alpha ? given("activation_alpha", alphas, "alpha", 1) : 1,
               beta = function.beta
                          ? given("activation_beta", betas, "beta", function.name == "Affine" ? 0 : 1)
                          : 0;
  if (function.name == "Affine") return call.b.add(call.b.mul(x, alpha), beta);
  if (function.name == "ScaledTanh") return call.b.mul(call.graph.add("tanh", {call.b.mul(x, beta)}), alpha);
  if (function.alpha) return by_operator(call, function, x, numbers);
  return call.graph.add(lower_case(std::string(function.name)), {x});
}

Value clipped(onnx::ImportCall& call, Value x) {
  if (!call.has("clip")) return x;
  const double limit = call.number("clip");
  return call.clamp(x, -limit, limit);
}

/// The state before the first step: zeros, or the operand's.
Value initial(onnx::ImportCall& call, int k, int64_t d, const Layer& layer) {
  if (!call.given(k)) return call.b.broadcast(call.scalar(call.dtype(0), 0), {layer.batch, layer.hidden});
  const Value x = layer.batch_first ? call.b.transpose(call[k], {1, 0, 2}) : call[k];
  return part(call, x, d, 0, layer.batch);
}

/// For each step and sample whether the sample goes on: [steps, batch, 1]. Of samples that are over the state
/// stays and the output is 0.
Value going_on(onnx::ImportCall& call, const Layer& layer) {
  const Shape all{layer.steps, layer.batch, 1};
  const Value lengths = call.b.reshape(call.b.cast(call[4], i64), {1, layer.batch, 1});
  return call.graph.add("less", {call.places(all, 0), call.b.broadcast(lengths, all)});
}

/// The next states, the output first, of x of a step and the states. `call` writes into the loop's body, and
/// its operands 1, 2, 3 and 7 are there, for direction d alone.
using Step = std::function<std::vector<Value>(onnx::ImportCall& call, int64_t d, Value x,
                                              const std::vector<Value>& state)>;

/// The loop of direction d: the states behind it, and the outputs of all steps [steps, batch, hidden].
std::vector<Value> loop(onnx::ImportCall& call, const Layer& layer, int64_t d, bool backwards,
                        const std::vector<int>& states, const Step& step) {
  ops::ScanOperands over;
  over.length = layer.steps;
  over.reverse = backwards;
  for (const int k : states) over.carries.push_back(initial(call, k, d, layer));
  over.sequences.push_back(layer.batch_first ? call.b.transpose(call[0], {1, 0, 2}) : call[0]);
  if (call.given(4)) over.sequences.push_back(going_on(call, layer));
  auto body = std::make_shared<Graph>();
  body->set_origin(call.graph.origin());
  std::vector<Value> state, slices;
  for (const Value& value : over.carries)
    state.push_back(body->input(fmt::format("state{}", state.size()), call.graph.type(value)));
  for (const Value& value : over.sequences) {
    Type type = call.graph.type(value);
    type.shape.erase(type.shape.begin());
    slices.push_back(body->input(fmt::format("step{}", slices.size()), type));
  }
  onnx::Items operands(static_cast<size_t>(call.count()));
  for (const int k : {1, 2, 3, 7}) {
    if (!call.given(k)) continue;
    Ints starts(call.shape(k).size(), 0), ends = call.shape(k).sizes();
    starts[0] = d;
    ends[0] = d + 1;
    over.invariants.push_back(call.graph.add("slice", {call[k]}, {{"starts", starts}, {"ends", ends}}));
    operands[static_cast<size_t>(k)] =
        body->input(fmt::format("operand{}", k), call.graph.type(over.invariants.back()));
  }
  onnx::ImportCall inside(call.node, call.opset, *body, std::move(operands), call.folder, call.nested);
  std::vector<Value> next = step(inside, d, slices[0], state);
  Value shown = next[0];
  if (slices.size() > 1) {
    const Value going = inside.b.broadcast(slices[1], {layer.batch, layer.hidden});
    for (size_t k = 0; k < next.size(); ++k) next[k] = inside.b.select(going, next[k], state[k]);
    shown = inside.b.select(going, shown, inside.fill(shown, 0));
  }
  next.push_back(shown);
  body->set_outputs(next);
  const Value first = ops::add_scan(call.graph, over, std::move(body));
  for (size_t k = 0; k < next.size(); ++k) next[k] = {first.node, static_cast<int32_t>(k)};
  return next;
}

/// Runs all directions; `states`: which operands the states begin with.
std::vector<Value> run(onnx::ImportCall& call, const Layer& layer, const std::vector<int>& states,
                       const Step& step) {
  const std::string direction = call.text("direction", "forward");
  std::vector<Value> outputs;                           // of each direction, [steps, 1, batch, hidden]
  std::vector<std::vector<Value>> last(states.size());  // of each state, [1, batch, hidden] of each direction
  for (int64_t d = 0; d < layer.directions; ++d) {
    const std::vector<Value> made = loop(call, layer, d, direction == "reverse" || d == 1, states, step);
    outputs.push_back(call.b.reshape(made.back(), {layer.steps, 1, layer.batch, layer.hidden}));
    for (size_t k = 0; k < states.size(); ++k)
      last[k].push_back(call.b.reshape(made[k], {1, layer.batch, layer.hidden}));
  }
  std::vector<Value> results{call.concat(outputs, 1)};
  if (layer.batch_first) results[0] = call.b.transpose(results[0], {2, 0, 1, 3});
  for (const std::vector<Value>& each : last) {
    const Value state = call.concat(each, 0);
    results.push_back(layer.batch_first ? call.b.transpose(state, {1, 0, 2}) : state);
  }
  return results;
}

/// x · Wᵀ + bias of gates from…to; `recurrent`: the second half of the biases, and R. In a loop's body.
Value product(onnx::ImportCall& call, const Layer& layer, Value x, bool recurrent, int64_t from, int64_t to,
              int64_t gates) {
  const int64_t h = layer.hidden;
  Value y = call.b.matmul(x, part(call, call[recurrent ? 2 : 1], 0, from * h, to * h), false, true);
  if (call.given(3)) {
    const int64_t offset = recurrent ? gates : 0;
    y = call.b.add(y, part(call, call[3], 0, (offset + from) * h, (offset + to) * h));
  }
  return y;
}

Value gate(onnx::ImportCall& call, const Layer& layer, Value all, int64_t at) {
  return call.part(all, 1, at * layer.hidden, (at + 1) * layer.hidden);
}

}  // namespace

MILLRACE_ONNX_IMPORT(RNN) {
  const Layer layer = layer_of(call, 1, 1);
  return run(
      call, layer, {5}, [&](onnx::ImportCall& in, int64_t d, Value x, const std::vector<Value>& state) {
        const Value sum =
            in.b.add(product(in, layer, x, false, 0, 1, 1), product(in, layer, state[0], true, 0, 1, 1));
        return std::vector<Value>{activation(in, clipped(in, sum), static_cast<size_t>(d), "Tanh")};
      });
}

MILLRACE_ONNX_IMPORT(GRU) {
  const Layer layer = layer_of(call, 3, 2);
  const bool after = call.integer("linear_before_reset", 0) != 0;
  const int64_t h = layer.hidden;
  return run(
      call, layer, {5}, [&](onnx::ImportCall& in, int64_t d, Value x, const std::vector<Value>& state) {
        const auto first = static_cast<size_t>(2 * d);
        const Value from_x = product(in, layer, x, false, 0, 3, 3),
                    from_h = product(in, layer, state[0], true, 0, after ? 3 : 2, 3);
        const Value gates =
            activation(in, clipped(in, in.b.add(in.part(from_x, 1, 0, 2 * h), in.part(from_h, 1, 0, 2 * h))),
                       first, "Sigmoid");
        const Value update = gate(in, layer, gates, 0), reset = gate(in, layer, gates, 1);
        const Value from_state = after ? in.b.mul(reset, gate(in, layer, from_h, 2))
                                       : product(in, layer, in.b.mul(reset, state[0]), true, 2, 3, 3);
        const Value candidate =
            activation(in, clipped(in, in.b.add(gate(in, layer, from_x, 2), from_state)), first + 1, "Tanh");
        // (1 − update) · candidate + update · state
        return std::vector<Value>{in.b.add(candidate, in.b.mul(update, in.b.sub(state[0], candidate)))};
      });
}

MILLRACE_ONNX_IMPORT(LSTM) {
  const Layer layer = layer_of(call, 4, 3);
  const int64_t h = layer.hidden;
  return run(
      call, layer, {5, 6}, [&](onnx::ImportCall& in, int64_t d, Value x, const std::vector<Value>& state) {
        const auto first = static_cast<size_t>(3 * d);
        const Value all =
            in.b.add(product(in, layer, x, false, 0, 4, 4), product(in, layer, state[0], true, 0, 4, 4));
        const auto peeped = [&](Value sum, Value cell, int64_t at) {
          return in.given(7) ? in.b.add(sum, in.b.mul(cell, part(in, in[7], 0, at * h, (at + 1) * h))) : sum;
        };
        // In the order input, output, forget, cell.
        const Value entering =
            activation(in, clipped(in, peeped(gate(in, layer, all, 0), state[1], 0)), first, "Sigmoid");
        const Value forget =
            in.integer("input_forget", 0) != 0
                ? in.b.sub(in.fill(entering, 1), entering)
                : activation(in, clipped(in, peeped(gate(in, layer, all, 2), state[1], 2)), first, "Sigmoid");
        const Value candidate = activation(in, clipped(in, gate(in, layer, all, 3)), first + 1, "Tanh");
        const Value cell = in.b.add(in.b.mul(forget, state[1]), in.b.mul(entering, candidate));
        const Value out =
            activation(in, clipped(in, peeped(gate(in, layer, all, 1), cell, 1)), first, "Sigmoid");
        return std::vector<Value>{in.b.mul(out, activation(in, cell, first + 2, "Tanh")), cell};
      });
}
