#include <millrace/operator.h>

#include "passes/rules/rule.h"

namespace millrace {

static Value add_of_negative(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  const bool adds = node.op->is(ScalarOp::add);
  if (!adds && !node.op->is(ScalarOp::sub)) return {};
  const auto negated = [&](int side) { return graph.node(operands[side]).op->is(ScalarOp::neg); };
  const auto inside = [&](int side) { return graph.node(operands[side]).operands[0]; };
  if (negated(1)) {
    const Value y = inside(1);
    return graph.add(adds ? "sub" : "add", {operands[0], y});
  }
  if (adds && negated(0)) {
    const Value x = inside(0);
    return graph.add("sub", {operands[1], x});
  }
  return {};
}

MILLRACE_RULE(add_of_negative){.name = "add-of-negative",
                               .doc = "x + (−y) = x − y, (−x) + y = y − x, x − (−y) = x + y",
                               .place = 100,
                               .exact = true,
                               .apply = add_of_negative};

}  // namespace millrace
