#include "passes/per_channel.h"

#include <millrace/operator.h>

#include "ops/build.h"

namespace millrace {

std::optional<Value> per_channel(Graph& graph, Value value) {
  if (!graph.node(value).op->broadcasts) return std::nullopt;
  const Shape to = graph.type(value).shape;
  const Value from = graph.node(value).operands[0];
  if (!graph.constant_value(from) || to.rank() != 4) return std::nullopt;
  const Shape shape = graph.type(from).shape;
  const bool scalar = shape.elements() == 1;
  const bool channel = shape.rank() >= 3 && shape[shape.rank() - 3] == to[1] && shape.elements() == to[1];
  ops::Build build(graph);
  if (scalar) return build.broadcast(build.reshape(from, {}), Shape{to[1]});
  if (channel) return build.reshape(from, Shape{to[1]});
  return std::nullopt;
}

}  // namespace millrace
