#include <limits>

#include "ops/pooling.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(max_pool2d_positions) {
  Operator op = ops::pooling_operator(
      "max_pool2d_positions",
      "The second result of max_pool2d: the position row * width + column of every window's first "
      "maximum.",
      {{"dtype", Attribute(i64), "i64, or i32 for gradients: half the memory", {.choices = {"i64", "i32"}}}});
  op.disjoint = ops::windows_disjoint;
  op.differentiable = false;
  op.types = [](const TypeContext& c) {
    return std::vector<Type>{{c.attributes.dtype("dtype"), ops::pooling_result(c.operands[0].shape, c)}};
  };
  op.element = [](ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
    const ops::Pooling p = ops::pooling(c.operands[0].shape, c.node.attributes);
    const DType dtype = c.node.types[0].dtype;
    const Scalar lowest = b.constant(c.operands[0].dtype, -std::numeric_limits<double>::infinity());
    Scalar best = lowest, position = b.integer(dtype, -1);
    ops::for_window(b, p, index, [&](Scalar inside, Scalar row, Scalar column) {
      const Scalar at[] = {index[0], index[1], row, column};
      const Scalar x = b.load_if(inside, 0, at, lowest);
      // Not (x ≤ best) is true for NaN too; a NaN stays the best. The first element wins even when it is −∞.
      const Scalar better = b.both(b.unary(ScalarOp::logical_not, b.binary(ScalarOp::less_equal, x, best)),
                                   b.equal(best, best));
      const Scalar first = b.less(position, b.integer(dtype, 0));
      const Scalar wins = b.both(inside, b.binary(ScalarOp::logical_or, better, first));
      best = b.select(wins, x, best);
      const Scalar here = b.cast(b.add(b.mul(row, b.integer(i64, p.width)), column), dtype);
      position = b.select(wins, here, position);
    });
    return position;
  };
  for (const ops::PoolingSample& s : ops::pooling_samples())
    for (const DType dtype : {i64, i32}) {
      Sample sample{.operands = {{s.dtype, s.x}}, .attributes = s.attributes};
      sample.attributes.set("dtype", dtype);
      op.samples.push_back(std::move(sample));
    }
  return op;
}
