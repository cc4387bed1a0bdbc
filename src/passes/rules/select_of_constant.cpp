#include <millrace/operator.h>

#include "ops/filled.h"
#include "ops/is.h"
#include "passes/rules/rule.h"

namespace millrace {

// select(true, x, y) = x, select(false, x, y) = y, select(c, x, x) = x.
Value select_of_constant(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (!ops::is(node, "select")) return {};
  if (operands[1] == operands[2]) return operands[1];
  const Array* condition = ops::filled_with(graph, operands[0]);
  if (!condition) return {};
  return condition->at(0) != 0 ? operands[1] : operands[2];
}

}  // namespace millrace
