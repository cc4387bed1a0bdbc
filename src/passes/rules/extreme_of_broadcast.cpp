#include <millrace/operator.h>

#include "ops/build.h"
#include "passes/rules/axes.h"
#include "passes/rules/rule.h"

namespace millrace {

static Value extreme_of_broadcast(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (!node.op->is(Reduction::max) && !node.op->is(Reduction::min)) return {};
  if (!graph.node(operands[0]).op->broadcasts) return {};
  const Shape shape = graph.type(operands[0]).shape;
  const std::vector<int64_t> axes = axes_of(node, shape.rank());
  for (const int64_t axis : axes)  // the extreme of nothing is not what was broadcast
    if (shape[static_cast<size_t>(axis)] == 0) return {};
  if (!broadcast_along(graph, operands[0], axes)) return {};
  return unreduced(graph, operands[0], axes, node.types[0].shape);
}

MILLRACE_RULE(extreme_of_broadcast){
    .name = "extreme-of-broadcast",
    .doc = "max and min of a broadcast along the reduced axes are what was broadcast",
    .place = 140,
    .exact = true,
    .apply = extreme_of_broadcast};

}  // namespace millrace
