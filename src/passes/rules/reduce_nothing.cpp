#include <millrace/operator.h>

#include "ops/build.h"
#include "passes/rules/axes.h"
#include "passes/rules/rule.h"

namespace millrace {

static Value reduce_nothing(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  const auto kind = node.op->reduction;
  if (!kind || kind == Reduction::argmax || kind == Reduction::argmin) return {};
  const Shape& shape = graph.type(operands[0]).shape;
  for (const int64_t axis : axes_of(node, shape.rank()))
    if (!(shape[static_cast<size_t>(axis)] == 1)) return {};
  ops::Build b(graph);
  return b.reshape(operands[0], node.types[0].shape);
}

MILLRACE_RULE(reduce_nothing){.name = "reduce-nothing",
                              .doc = "a sum, mean, max or min over axes of size 1 is its operand",
                              .place = 60,
                              .exact = true,
                              .apply = reduce_nothing};

}  // namespace millrace
