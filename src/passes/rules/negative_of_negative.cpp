#include <millrace/operator.h>

#include "passes/rules/rule.h"

namespace millrace {

// −(−x) = x.
Value negative_of_negative(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (!node.op->is(ScalarOp::neg)) return {};
  const Node& inner = graph.node(operands[0]);
  return inner.op->is(ScalarOp::neg) ? inner.operands[0] : Value{};
}

}  // namespace millrace
