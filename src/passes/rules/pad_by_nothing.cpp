#include <millrace/operator.h>

#include "passes/rules/rule.h"

namespace millrace {

// A pad that adds nothing.
Value pad_by_nothing(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (node.op->name != "pad" || graph.type(operands[0]) != node.types[0]) return {};
  return operands[0];
}

}  // namespace millrace
