#include <millrace/operator.h>

#include "ops/filled.h"
#include "passes/rules/rule.h"

namespace millrace {

static Value select_of_constant(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (!node.op->chooses) return {};
  if (operands[1] == operands[2]) return operands[1];
  const Array* condition = ops::filled_with(graph, operands[0]);
  if (!condition) return {};
  return condition->at(0) != 0 ? operands[1] : operands[2];
}

MILLRACE_RULE(select_of_constant){
    .name = "select-of-constant",
    .doc = "select(true, x, y) = x, select(false, x, y) = y, select(c, x, x) = x",
    .place = 110,
    .exact = true,
    .apply = select_of_constant};

}  // namespace millrace
