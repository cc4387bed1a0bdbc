#include <millrace/operator.h>

#include "passes/rules/rule.h"

namespace millrace {

static Value negative_of_negative(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (!node.op->is(ScalarOp::neg)) return {};
  const Node& inner = graph.node(operands[0]);
  return inner.op->is(ScalarOp::neg) ? inner.operands[0] : Value{};
}

MILLRACE_RULE(negative_of_negative){.name = "negative-of-negative",
                                    .doc = "−(−x) = x",
                                    .place = 90,
                                    .exact = true,
                                    .apply = negative_of_negative};

}  // namespace millrace
