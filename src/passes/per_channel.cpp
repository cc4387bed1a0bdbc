#include "passes/per_channel.h"

#include <millrace/operator.h>

#include "ops/build.h"

namespace millrace {

bool is_per_channel(const Graph& graph, Value value) {
  const Node& node = graph.node(value);
  const Shape& to = node.types[0].shape;
  if (!node.op->broadcasts || to.rank() != 4 || !graph.constant_value(node.operands[0])) return false;
  const Shape& from = graph.type(node.operands[0]).shape;
  return from.elements() == 1 ||
         (from.rank() >= 3 && from[from.rank() - 3] == to[1] && from.elements() == to[1]);
}

std::optional<Value> per_channel(Graph& graph, Value value) {
  if (!is_per_channel(graph, value)) return std::nullopt;
  const Value from = graph.node(value).operands[0];
  const Dim channels = graph.type(value).shape[1];
  ops::Build build(graph);
  if (const Array& number = *graph.constant_value(from); number.count() == 1) {
    // A broadcast would not be folded into what it is multiplied with behind another reshape.
    if (channels.is_static()) return graph.constant(Array::full(number.dtype(), {channels}, number.at(0)));
    return build.broadcast(build.reshape(from, {}), Shape{channels});
  }
  return build.reshape(from, Shape{channels});
}

}  // namespace millrace
