#include <millrace/operator.h>

#include "ops/build.h"
#include "passes/rules/axes.h"
#include "passes/rules/rule.h"

namespace millrace {

// The sum of a broadcast along the reduced axes is what was broadcast times their size: one rounding instead
// of many. The mean is what was broadcast.
static Value sum_of_broadcast(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  const bool mean = node.op->is(Reduction::mean);
  if ((!node.op->is(Reduction::sum) && !mean) || !node.types[0].dtype.is_float()) return {};
  const Value one = reduced_alike(graph, node, operands[0]);
  if (!one.valid()) return {};
  const Shape shape = graph.type(operands[0]).shape;
  double count = 1;
  for (const int64_t axis : axes_of(node, shape.rank()))
    count *= static_cast<double>(shape[static_cast<size_t>(axis)].size());
  ops::Build b(graph);
  return mean ? one : b.mul(one, count);
}

MILLRACE_RULE(sum_of_broadcast){
    .name = "sum-of-broadcast",
    .doc = "the sum of a broadcast is what was broadcast times its size, the mean is what was broadcast",
    .place = 180,
    .exact = false,
    .apply = sum_of_broadcast};

}  // namespace millrace
