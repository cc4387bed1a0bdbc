#include <millrace/operator.h>

#include "passes/rules/rule.h"

namespace millrace {

// A slice that takes everything.
Value slice_of_all(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (node.op->name != "slice" || graph.type(operands[0]) != node.types[0]) return {};
  return operands[0];
}

}  // namespace millrace
