#include "passes/rules/axes.h"

#include <millrace/operator.h>

#include "base/contains.h"
#include "ops/build.h"

namespace millrace {

Value reduced_alike(Graph& graph, const Node& reduction, Value operand) {
  if (!graph.node(operand).op->broadcasts) return {};
  const Value from = graph.node(operand).operands[0];
  const Shape own = graph.type(from).shape, all = graph.type(operand).shape;
  const Shape& result = reduction.types[0].shape;
  const int missing = all.rank() - own.rank();
  const std::vector<int64_t> axes = axes_of(reduction, all.rank());
  for (const int64_t axis : axes)
    if (all[static_cast<size_t>(axis)] == 0 ||
        (axis >= missing && !(own[static_cast<size_t>(axis - missing)] == 1)))
      return {};
  // The reduced axes are of size 1 in `from`: left out where the result leaves them out.
  Shape kept;
  for (int d = 0; d < own.rank(); ++d)
    if (!contains(axes, d + missing) || result.rank() == all.rank())
      kept.push_back(own[static_cast<size_t>(d)]);
  ops::Build b(graph);
  return b.broadcast(b.reshape(from, kept), result);
}

}  // namespace millrace
