#include "optim/ascend.h"

#include "base/format.h"
#include "ops/build.h"

namespace millrace::optim {

Differentiated ascended(const Differentiated& step, double radius, const std::vector<int>& trainable) {
  Graph one = step.graph;
  std::vector<Value> wanted = step.means;
  wanted.insert(wanted.end(), step.buffers.begin(), step.buffers.end());
  wanted.insert(wanted.end(), step.gradients.begin(), step.gradients.end());
  one.set_outputs(wanted);

  Differentiated both;
  Graph& graph = both.graph;
  for (size_t i = 0; i < one.inputs().size(); ++i)
    graph.input(one.input_names()[i], one.type(one.inputs()[i]));
  std::vector<Value> given = graph.inputs();
  const std::vector<Value> made = inline_graph(graph, one, given);
  const auto buffers = made.begin() + std::ssize(step.means), gradients = buffers + std::ssize(step.buffers);
  both.means.assign(made.begin(), buffers);
  both.buffers.assign(buffers, gradients);

  graph.set_origin({"ascend", Phase::backward});
  ops::Build b(graph);
  Value squares;
  for (auto gradient = gradients; gradient != made.end(); ++gradient) {
    const Value part = b.sum(b.mul(*gradient, *gradient), {}, false);
    squares = squares.valid() ? b.add(squares, part) : part;
  }
  if (!squares.valid()) return step;
  const Value factor = b.div(b.scalar(f32, radius), b.add(b.unary("sqrt", squares), 1e-12));
  for (size_t k = 0; k < trainable.size(); ++k) {
    Value& parameter = given[static_cast<size_t>(trainable[k])];
    if (b.dtype(parameter) != f32)
      fail<InputError>(
          "sam looks a little beside the weights, which weights stored as {} would round away: use "
          "train.precision = \"bf16\", which stores them as f32",
          b.dtype(parameter).name());
    parameter = b.add(parameter, b.mul(gradients[static_cast<std::ptrdiff_t>(k)], factor));
  }
  const std::vector<Value> beside = inline_graph(graph, one, given);
  both.gradients.assign(beside.end() - std::ssize(step.gradients), beside.end());
  graph.set_origin("");
  return both;
}

}  // namespace millrace::optim
