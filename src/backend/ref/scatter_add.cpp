#include "backend/ref/registry.h"
#include "ops/axis.h"

using namespace millrace;

MILLRACE_REF(scatter_add) {
  const Array &base = operands[0], &indices = operands[1], &updates = operands[2];
  const std::vector<int64_t> sizes = base.shape().sizes();
  const int64_t axis = ops::axis_of(node.attributes, base.shape().rank());
  int64_t inner = 1;
  for (size_t d = axis + 1; d < sizes.size(); ++d) inner *= sizes[d];
  const int64_t count = indices.count();
  Array out = base.clone();
  std::vector<double> sums = base.to_doubles();
  for (int64_t i = 0; i < updates.count(); ++i) {
    const int64_t outer = i / (count * inner), index = indices.int_at(i / inner % count);
    if (index < 0 || index >= sizes[axis]) continue;
    const int64_t to = (outer * sizes[axis] + index) * inner + i % inner;
    if (out.dtype().is_float())
      sums[to] += updates.at(i);
    else
      out.set_int(to, out.int_at(to) + updates.int_at(i));
  }
  if (out.dtype().is_float())
    for (int64_t i = 0; i < out.count(); ++i) out.set(i, sums[i]);
  return {out};
}
