// Layers over sequences.
#include <cmath>
#include <numeric>

#include <millrace/nn.h>

#include "base/format.h"
#include "trace/node.h"

namespace millrace::nn {

Recurrent::Recurrent(int64_t in, int64_t hidden, int64_t gates, int64_t states,
                     const RecurrentOptions& options)
    : in_(in), hidden_(hidden), states_(static_cast<size_t>(states)), options_(options) {
  if (in < 1 || hidden < 1 || options.layers < 1)
    fail<InputError>("a recurrent layer needs positive sizes, not {} inputs, {} hidden and {} layers", in,
                     hidden, options.layers);
  if (!(options.dropout >= 0 && options.dropout < 1))
    fail<InputError>("dropout takes a probability in [0, 1), not {}", options.dropout);
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  const Initialiser uniform = init::uniform(-bound, bound);
  for (int64_t layer = 0; layer < options.layers; ++layer)
    for (int direction = 0; direction < (options.bidirectional ? 2 : 1); ++direction) {
      const std::string name = fmt::format("l{}{}", layer, direction ? "_reverse" : "");
      const int64_t width = layer == 0 ? in : hidden * (options.bidirectional ? 2 : 1);
      Weights w;
      w.input = &parameter("weight_ih_" + name, {gates * hidden, width}, uniform);
      w.hidden = &parameter("weight_hh_" + name, {gates * hidden, hidden}, uniform);
      if (options.bias) {
        w.input_bias = &parameter("bias_ih_" + name, {gates * hidden}, uniform);
        w.hidden_bias = &parameter("bias_hh_" + name, {gates * hidden}, uniform);
      }
      weights_.push_back(w);
    }
}

Tensor Recurrent::gate(const Tensor& gates, int64_t index) const {
  return slice(gates, 1, index * hidden_, (index + 1) * hidden_);
}

Tensor Recurrent::forward(const Tensor& x) { return run(x).output; }

namespace {

/// Is step t of a sequence a real one: bool [length, N, 1].
Tensor real_steps(const Tensor& lengths, const Dim& steps, const Dim& rows) {
  if (lengths.rank() != 1 || lengths.dtype() != i64 || !(lengths.dim(0) == rows) || !steps.is_static())
    fail<TypeError>("a recurrent layer: lengths {} given, i64 [{}] expected (in layer '{}')",
                    lengths.type().str(), rows.str(), trace::current_layer());
  std::vector<double> numbers(static_cast<size_t>(steps.size()));
  std::iota(numbers.begin(), numbers.end(), 0.0);
  const Tensor place = Array::of(i64, {steps, 1}, numbers);
  return unsqueeze(place < unsqueeze(lengths, 0), 2);
}

}  // namespace

Recurrent::Result Recurrent::run(const Tensor& x, std::span<const Tensor> state, const Tensor& lengths) {
  if (x.rank() != 3 || !(x.dim(2) == in_))
    fail<TypeError>("a recurrent layer: {} given, [{}, {}] expected (in layer '{}')", x.type().str(),
                    options_.batch_first ? "N, length" : "length, N", in_, trace::current_layer());
  const size_t directions = options_.bidirectional ? 2 : 1;
  const Dim rows = x.dim(options_.batch_first ? 0 : 1);
  const Shape whole = {static_cast<int64_t>(weights_.size()), rows, hidden_};
  if (!state.empty() && state.size() != states_)
    fail<TypeError>("a recurrent layer with {} states is given {}", states_, state.size());
  for (const Tensor& part : state)
    if (part.shape() != whole)
      fail<TypeError>("the state of a recurrent layer: {} given, {} expected (in layer '{}')",
                      part.type().str(), whole.str(), trace::current_layer());
  Tensor y = options_.batch_first ? transpose(x, {1, 0, 2}) : x;
  const Tensor real = lengths.defined() ? real_steps(lengths, y.dim(0), rows) : Tensor();
  std::vector<std::vector<Tensor>> last(states_);
  for (size_t k = 0; k < weights_.size(); k += directions) {
    if (k > 0 && training() && options_.dropout > 0) y = dropout(y, options_.dropout, next_random_key());
    std::vector<Tensor> outputs;
    for (size_t d = 0; d < directions; ++d) {
      std::vector<Tensor> first;
      for (size_t s = 0; s < states_; ++s)
        first.push_back(state.empty() ? Tensor::zeros({rows, hidden_}, x.dtype())
                                      : select_index(state[s], 0, static_cast<int64_t>(k + d)));
      const auto step = [&](std::span<const Tensor> carries, std::span<const Tensor> slices) {
        std::vector<Tensor> next = cell(slices[0], carries, weights_[k + d]);
        // Behind its end a sequence keeps its state, and before its end the other way round its first one.
        for (size_t s = 0; s < next.size() && slices.size() > 1; ++s)
          next[s] = where(slices[1], next[s], carries[s]);
        return ScanResult{next, {next[0]}};
      };
      std::vector<Tensor> over = {y};
      if (real.defined()) over.push_back(real);
      const ScanResult done = scan(step, first, over, d == 1);
      outputs.push_back(real.defined() ? where(real, done.stacked[0], 0) : done.stacked[0]);
      for (size_t s = 0; s < states_; ++s) last[s].push_back(unsqueeze(done.carries[s], 0));
    }
    y = directions == 1 ? outputs[0] : concat(outputs, 2);
  }
  Result result{options_.batch_first ? transpose(y, {1, 0, 2}) : y, {}};
  for (const std::vector<Tensor>& parts : last)
    result.state.push_back(parts.size() == 1 ? parts[0] : concat(parts, 0));
  return result;
}

LSTM::LSTM(int64_t in, int64_t hidden, const RecurrentOptions& options)
    : Recurrent(in, hidden, 4, 2, options) {}

std::vector<Tensor> LSTM::cell(const Tensor& x, std::span<const Tensor> state, const Weights& w) const {
  const Tensor gates = linear(x, *w.input, w.input_bias ? *w.input_bias : Tensor()) +
                       linear(state[0], *w.hidden, w.hidden_bias ? *w.hidden_bias : Tensor());
  const Tensor i = sigmoid(gate(gates, 0)), f = sigmoid(gate(gates, 1)), g = tanh(gate(gates, 2)),
               o = sigmoid(gate(gates, 3));
  const Tensor c = f * state[1] + i * g;
  return {o * tanh(c), c};
}

GRU::GRU(int64_t in, int64_t hidden, const RecurrentOptions& options)
    : Recurrent(in, hidden, 3, 1, options) {}

std::vector<Tensor> GRU::cell(const Tensor& x, std::span<const Tensor> state, const Weights& w) const {
  const Tensor from_x = linear(x, *w.input, w.input_bias ? *w.input_bias : Tensor()),
               from_h = linear(state[0], *w.hidden, w.hidden_bias ? *w.hidden_bias : Tensor());
  const Tensor r = sigmoid(gate(from_x, 0) + gate(from_h, 0)), z = sigmoid(gate(from_x, 1) + gate(from_h, 1)),
               n = tanh(gate(from_x, 2) + r * gate(from_h, 2));
  return {(1 - z) * n + z * state[0]};
}

}  // namespace millrace::nn
