#include <functional>

#include "onnx/import/call.h"

using namespace millrace;
using onnx::Ints;

// RNN, GRU and LSTM, step after step.
namespace {

struct Layer {
  int64_t steps, batch, hidden, directions;
  bool batch_first;
};

Layer layer_of(onnx::ImportCall& call) {
  if (call.rank(0) != 3 || call.rank(2) != 3)
    call.refuse("its input or weights have another number of dimensions than 3");
  const bool batch_first = call.integer("layout", 0) != 0;
  const Ints s = call.shape(0).sizes();
  Layer layer{s[batch_first ? 1 : 0], s[batch_first ? 0 : 1], call.shape(2)[2].size(),
              call.shape(1)[0].size(), batch_first};
  constexpr int64_t most = 4096;
  if (layer.steps < 1 || layer.steps > most)
    call.refuse("it has more steps than can be written one after the other");
  if (call.integer("input_forget", 0) != 0) call.refuse("coupled gates are not known");
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

Value activation(onnx::ImportCall& call, Value x, size_t at, const char* fallback) {
  const std::vector<std::string> names =
      call.has("activations") ? call.attribute("activations").texts : std::vector<std::string>{};
  const std::string name = at < names.size() ? names[at] : fallback;
  if (name == "Sigmoid") return call.graph.add("sigmoid", {x});
  if (name == "Tanh") return call.graph.add("tanh", {x});
  if (name == "Relu") return call.graph.add("relu", {x});
  if (name == "Softsign") return call.graph.add("softsign", {x});
  if (name == "Softplus") return call.graph.add("softplus", {x});
  call.refuse("the activation " + name + " is not known");
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

/// x of step t [batch, input].
Value input_of(onnx::ImportCall& call, const Layer& layer, int64_t t) {
  return call.b.reshape(call.part(call[0], layer.batch_first ? 1 : 0, t, t + 1),
                        {layer.batch, call.shape(0)[2]});
}

/// Of samples that are over already the state stays and the output is 0.
struct Lengths {
  onnx::ImportCall& call;
  const Layer& layer;
  bool given = call.given(4);
  Value going(int64_t t) const {
    const Value lengths = call.b.reshape(call.b.cast(call[4], i64), {layer.batch, 1});
    return call.b.broadcast(call.compare("greater", lengths, static_cast<double>(t)),
                            {layer.batch, layer.hidden});
  }
};

using Step = std::function<std::vector<Value>(int64_t d, Value x, const std::vector<Value>& state)>;

/// Runs all directions; `states`: which operands the states begin with.
std::vector<Value> run(onnx::ImportCall& call, const Layer& layer, const std::vector<int>& states,
                       const Step& step) {
  const std::string direction = call.text("direction", "forward");
  const Lengths lengths{call, layer};
  std::vector<Value> outputs;                           // of each direction, [steps, 1, batch, hidden]
  std::vector<std::vector<Value>> last(states.size());  // of each state, [1, batch, hidden] of each direction
  for (int64_t d = 0; d < layer.directions; ++d) {
    const bool backwards = direction == "reverse" || d == 1;
    std::vector<Value> state;
    for (const int k : states) state.push_back(initial(call, k, d, layer));
    std::vector<Value> rows(static_cast<size_t>(layer.steps));
    for (int64_t i = 0; i < layer.steps; ++i) {
      const int64_t t = backwards ? layer.steps - 1 - i : i;
      std::vector<Value> next = step(d, input_of(call, layer, t), state);
      Value shown = next[0];
      if (lengths.given) {
        const Value going = lengths.going(t);
        for (size_t k = 0; k < next.size(); ++k) next[k] = call.b.select(going, next[k], state[k]);
        shown = call.b.select(going, shown, call.fill(shown, 0));
      }
      state = next;
      rows[static_cast<size_t>(t)] = call.b.reshape(shown, {1, 1, layer.batch, layer.hidden});
    }
    outputs.push_back(call.concat(rows, 0));
    for (size_t k = 0; k < states.size(); ++k)
      last[k].push_back(call.b.reshape(state[k], {1, layer.batch, layer.hidden}));
  }
  std::vector<Value> results{call.concat(outputs, 1)};
  if (layer.batch_first) results[0] = call.b.transpose(results[0], {2, 0, 1, 3});
  for (const std::vector<Value>& each : last) {
    const Value state = call.concat(each, 0);
    results.push_back(layer.batch_first ? call.b.transpose(state, {1, 0, 2}) : state);
  }
  return results;
}

/// x · Wᵀ + bias of gates from…to; `recurrent`: the second half of the biases, and R.
Value product(onnx::ImportCall& call, const Layer& layer, int64_t d, Value x, bool recurrent, int64_t from,
              int64_t to, int64_t gates) {
  const int64_t h = layer.hidden;
  Value y = call.b.matmul(x, part(call, call[recurrent ? 2 : 1], d, from * h, to * h), false, true);
  if (call.given(3)) {
    const int64_t offset = recurrent ? gates : 0;
    y = call.b.add(y, part(call, call[3], d, (offset + from) * h, (offset + to) * h));
  }
  return y;
}

Value gate(onnx::ImportCall& call, const Layer& layer, Value all, int64_t at) {
  return call.part(all, 1, at * layer.hidden, (at + 1) * layer.hidden);
}

}  // namespace

MILLRACE_ONNX_IMPORT(RNN) {
  const Layer layer = layer_of(call);
  return run(call, layer, {5}, [&](int64_t d, Value x, const std::vector<Value>& state) {
    const Value sum = call.b.add(product(call, layer, d, x, false, 0, 1, 1),
                                 product(call, layer, d, state[0], true, 0, 1, 1));
    return std::vector<Value>{activation(call, clipped(call, sum), static_cast<size_t>(d), "Tanh")};
  });
}

MILLRACE_ONNX_IMPORT(GRU) {
  const Layer layer = layer_of(call);
  const bool after = call.integer("linear_before_reset", 0) != 0;
  return run(call, layer, {5}, [&](int64_t d, Value x, const std::vector<Value>& state) {
    const auto first = static_cast<size_t>(2 * d);
    const Value gates =
        activation(call,
                   clipped(call, call.b.add(product(call, layer, d, x, false, 0, 2, 3),
                                            product(call, layer, d, state[0], true, 0, 2, 3))),
                   first, "Sigmoid");
    const Value update = gate(call, layer, gates, 0), reset = gate(call, layer, gates, 1);
    const Value from_state = after ? call.b.mul(reset, product(call, layer, d, state[0], true, 2, 3, 3))
                                   : product(call, layer, d, call.b.mul(reset, state[0]), true, 2, 3, 3);
    const Value candidate =
        activation(call, clipped(call, call.b.add(product(call, layer, d, x, false, 2, 3, 3), from_state)),
                   first + 1, "Tanh");
    // (1 − update) · candidate + update · state
    return std::vector<Value>{call.b.add(candidate, call.b.mul(update, call.b.sub(state[0], candidate)))};
  });
}

MILLRACE_ONNX_IMPORT(LSTM) {
  const Layer layer = layer_of(call);
  return run(call, layer, {5, 6}, [&](int64_t d, Value x, const std::vector<Value>& state) {
    const auto first = static_cast<size_t>(3 * d);
    const int64_t h = layer.hidden;
    const Value all = call.b.add(product(call, layer, d, x, false, 0, 4, 4),
                                 product(call, layer, d, state[0], true, 0, 4, 4));
    const auto peeped = [&](Value sum, Value cell, int64_t at) {
      return call.given(7) ? call.b.add(sum, call.b.mul(cell, part(call, call[7], d, at * h, (at + 1) * h)))
                           : sum;
    };
    // In the order input, output, forget, cell.
    const Value in =
        activation(call, clipped(call, peeped(gate(call, layer, all, 0), state[1], 0)), first, "Sigmoid");
    const Value forget =
        activation(call, clipped(call, peeped(gate(call, layer, all, 2), state[1], 2)), first, "Sigmoid");
    const Value candidate = activation(call, clipped(call, gate(call, layer, all, 3)), first + 1, "Tanh");
    const Value cell = call.b.add(call.b.mul(forget, state[1]), call.b.mul(in, candidate));
    const Value out =
        activation(call, clipped(call, peeped(gate(call, layer, all, 1), cell, 1)), first, "Sigmoid");
    return std::vector<Value>{call.b.mul(out, activation(call, cell, first + 2, "Tanh")), cell};
  });
}
