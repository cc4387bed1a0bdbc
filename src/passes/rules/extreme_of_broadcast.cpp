#include <millrace/operator.h>

#include "passes/rules/axes.h"
#include "passes/rules/rule.h"

namespace millrace {

static Value extreme_of_broadcast(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (!node.op->is(Reduction::max) && !node.op->is(Reduction::min)) return {};
  return reduced_alike(graph, node, operands[0]);
}

MILLRACE_RULE(extreme_of_broadcast){
    .name = "extreme-of-broadcast",
    .doc = "max and min of a broadcast along the reduced axes are what was broadcast",
    .place = 140,
    .exact = true,
    .apply = extreme_of_broadcast};

}  // namespace millrace
