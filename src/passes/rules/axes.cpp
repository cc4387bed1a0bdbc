#include "passes/rules/axes.h"

#include "base/contains.h"
#include "ops/build.h"

namespace millrace {

Value unreduced(Graph& graph, Value broadcast, const std::vector<int64_t>& axes, const Shape& result) {
  const Value from = graph.node(broadcast).operands[0];
  const Shape own = graph.type(from).shape;
  const int rank = graph.type(broadcast).shape.rank(), missing = rank - own.rank();
  // The reduced axes are of size 1 in `from`: left out where the result leaves them out.
  Shape kept;
  for (int d = 0; d < own.rank(); ++d)
    if (!contains(axes, d + missing) || result.rank() == rank) kept.push_back(own[static_cast<size_t>(d)]);
  ops::Build b(graph);
  return b.broadcast(b.reshape(from, kept), result);
}

}  // namespace millrace
