#include <millrace/operator.h>

#include "ops/filled.h"
#include "passes/rules/rule.h"

namespace millrace {

static Value multiply_by_one(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (node.op->is(ScalarOp::div)) return ops::is_filled_with(graph, operands[1], 1) ? operands[0] : Value{};
  if (!node.op->is(ScalarOp::mul)) return {};
  if (ops::is_filled_with(graph, operands[1], 1)) return operands[0];
  if (ops::is_filled_with(graph, operands[0], 1)) return operands[1];
  return {};
}

MILLRACE_RULE(multiply_by_one){.name = "multiply-by-one",
                               .doc = "x · 1 = x, x / 1 = x",
                               .place = 80,
                               .exact = true,
                               .apply = multiply_by_one};

}  // namespace millrace
