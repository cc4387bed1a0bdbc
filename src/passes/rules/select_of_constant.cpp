#include <millrace/operator.h>

#include "passes/rules/rule.h"

namespace millrace {

// select(true, x, y) = x, select(false, x, y) = y, select(c, x, x) = x.
Value select_of_constant(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (node.op->name != "select") return {};
  if (operands[1] == operands[2]) return operands[1];
  const Array* condition = filled_with(graph, operands[0]);
  if (!condition) return {};
  return condition->at(0) != 0 ? operands[1] : operands[2];
}

}  // namespace millrace
