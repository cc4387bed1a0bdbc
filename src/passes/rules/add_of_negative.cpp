#include <millrace/operator.h>

#include "passes/rules/rule.h"

namespace millrace {

// x + (−y) = x − y, (−x) + y = y − x, x − (−y) = x + y.
Value add_of_negative(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  const std::string_view op = node.op->name;
  if (op != "add" && op != "sub") return {};
  const auto negated = [&](int side) { return graph.node(operands[side]).op->name == "neg"; };
  const auto inside = [&](int side) { return graph.node(operands[side]).operands[0]; };
  if (negated(1)) {
    const Value y = inside(1);
    return graph.add(op == "add" ? "sub" : "add", {operands[0], y});
  }
  if (op == "add" && negated(0)) {
    const Value x = inside(0);
    return graph.add("sub", {operands[1], x});
  }
  return {};
}

}  // namespace millrace
