#include <millrace/operator.h>

#include "ops/filled.h"
#include "passes/rules/rule.h"

namespace millrace {

static Value small_power(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (!node.op->is(ScalarOp::pow)) return {};
  if (ops::is_filled_with(graph, operands[1], 1)) return operands[0];
  if (ops::is_filled_with(graph, operands[1], 2)) return graph.add("mul", {operands[0], operands[0]});
  return {};
}

MILLRACE_RULE(small_power){
    .name = "small-power", .doc = "x¹ = x, x² = x · x", .place = 120, .exact = true, .apply = small_power};

}  // namespace millrace
