#include <millrace/operator.h>

#include "ops/filled.h"
#include "passes/rules/rule.h"

namespace millrace {

static Value add_zero(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (node.op->is(ScalarOp::sub)) return ops::is_filled_with(graph, operands[1], 0) ? operands[0] : Value{};
  if (!node.op->is(ScalarOp::add)) return {};
  if (ops::is_filled_with(graph, operands[1], 0)) return operands[0];
  if (ops::is_filled_with(graph, operands[0], 0)) return operands[1];
  return {};
}

MILLRACE_RULE(add_zero){
    .name = "add-zero", .doc = "x + 0 = x, x − 0 = x", .place = 70, .exact = true, .apply = add_zero};

}  // namespace millrace
