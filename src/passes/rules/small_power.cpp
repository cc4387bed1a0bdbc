#include <millrace/operator.h>

#include "ops/filled.h"
#include "passes/rules/rule.h"

namespace millrace {

// x¹ = x, x² = x · x.
Value small_power(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (!node.op->is(ScalarOp::pow)) return {};
  if (ops::is_filled_with(graph, operands[1], 1)) return operands[0];
  if (ops::is_filled_with(graph, operands[1], 2)) return graph.add("mul", {operands[0], operands[0]});
  return {};
}

}  // namespace millrace
