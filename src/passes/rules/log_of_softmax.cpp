#include <millrace/operator.h>

#include "ops/is.h"
#include "passes/rules/rule.h"

namespace millrace {

// log(softmax(x)) = log_softmax(x), which does not take the logarithm of 0 where x is very small.
static Value log_of_softmax(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (!node.op->is(ScalarOp::log)) return {};
  const Node& inner = graph.node(operands[0]);
  if (!ops::is(inner, "softmax") || inner.attributes.flag("zero_empty")) return {};
  const Value x = inner.operands[0];
  return graph.add("log_softmax", {x}, {{"axis", inner.attributes.integer("axis")}});
}

MILLRACE_RULE(log_of_softmax){.name = "log-of-softmax",
                              .doc = "log(softmax(x)) = log_softmax(x)",
                              .place = 190,
                              .exact = false,
                              .apply = log_of_softmax};

}  // namespace millrace
