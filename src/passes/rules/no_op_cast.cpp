#include <millrace/operator.h>

#include "passes/rules/rule.h"

namespace millrace {

// A cast to the dtype that is there.
Value no_op_cast(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  return node.op->name == "cast" && graph.type(operands[0]) == node.types[0] ? operands[0] : Value{};
}

}  // namespace millrace
