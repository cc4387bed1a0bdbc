#include "task/loss_derivatives.h"

#include <cmath>
#include <cstring>

#include <millrace/random.h>

#include "autodiff/gradient.h"
#include "base/format.h"
#include "ops/build.h"
#include "trace/linearise.h"

namespace millrace::task {

LossDerivatives::LossDerivatives(const Output& output, Array targets) : targets_(std::move(targets)) {
  constexpr int64_t most = 64;
  const int64_t rows = targets_.shape()[0].size(), width = output.width();
  if (width > most)
    fail<InputError>(
        "{}: its loss, which is not the usual one, has second derivatives of {} logits, and those of {} at "
        "most are looked at: leave the loss and weights of classes as they usually are",
        output_key(output.section()), width, most);
  const Tensor symbols[] = {Tensor::symbol("logits", {f32, {rows, width}}),
                            Tensor::symbol("targets", targets_.type())};
  const Tensor total = output.loss(symbols[0], symbols[1], false).sum();
  trace::Captured captured = trace::capture(symbols, {&total, 1});
  Graph& graph = captured.graph;
  ops::Build b(graph);
  const Value loss = captured.value_of(total), logits = graph.inputs()[0];
  const Value first = gradients(graph, loss, {&logits, 1})[0];
  Value second = b.zeros(first);
  for (int64_t k = 0; k < width; ++k) {
    Array one(f32, {1, width});
    one.set(k, 1);
    const Value seed = b.broadcast(graph.constant(one), {rows, width});
    second = b.add(second, b.mul(gradients(graph, {&first, 1}, {&seed, 1}, {&logits, 1})[0], seed));
  }
  const Value known = graph.add("greater", {second, b.zeros(second)});
  graph.set_outputs({first, b.select(known, second, b.fill(second, 1))}, {"first", "second"});
  program_ = std::make_unique<Program>(Program::compile(graph));
}

std::pair<Array, Array> LossDerivatives::operator()(const Array& logits) {
  program_->bind_input(0, logits);
  program_->bind_input(1, targets_);
  program_->run();
  return {program_->output(0).clone(), program_->output(1).clone()};
}

bool is_usual_loss(const Output& output, const Array& targets) {
  constexpr int64_t most = 256;
  const int64_t rows = std::min(most, targets.shape()[0].size()), width = output.width();
  Type type = targets.type();
  type.shape[0] = rows;
  Array some(type), logits(f32, {rows, width});
  // Rows from all over, so that all that is frequent is there.
  const int64_t bytes = targets.bytes() / targets.shape()[0].size();
  for (int64_t row = 0; row < rows; ++row)
    std::memcpy(
        static_cast<std::byte*>(some.data()) + row * bytes,
        static_cast<const std::byte*>(targets.data()) + row * targets.shape()[0].size() / rows * bytes,
        static_cast<size_t>(bytes));
  RandomStream random(1, 0, 0);
  for (float& logit : logits.as<float>()) logit = static_cast<float>(4 * random.uniform() - 2);
  Tensor x(logits), expected;
  switch (output.link()) {
    case eval::Link::softmax:
      expected = softmax(x) - one_hot(Tensor(some), width);
      break;
    case eval::Link::sigmoid:
      expected = sigmoid(x) - Tensor(some);
      break;
    case eval::Link::none:
      expected = x - Tensor(some);
      break;
  }
  const Tensor symbols[] = {Tensor::symbol("logits", x.type()), Tensor::symbol("targets", type)};
  const Tensor total = output.loss(symbols[0], symbols[1], false).sum();
  trace::Captured captured = trace::capture(symbols, {&total, 1});
  const Value loss = captured.value_of(total), in = captured.graph.inputs()[0];
  captured.graph.set_outputs(gradients(captured.graph, loss, {&in, 1}), {"first"});
  Program program = Program::compile(captured.graph);
  program.bind_input(0, logits);
  program.bind_input(1, some);
  program.run();
  const std::vector<double> found = program.output(0).to_doubles(), usual = expected.to_array().to_doubles();
  double product = 0, square = 0, away = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    product += found[i] * usual[i];
    square += usual[i] * usual[i];
  }
  const double factor = square > 0 ? product / square : 0;
  for (size_t i = 0; i < found.size(); ++i) away = std::max(away, std::abs(found[i] - factor * usual[i]));
  return factor > 0 && away < 1e-5 * factor;
}

}  // namespace millrace::task
