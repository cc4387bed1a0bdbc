#include "base/format.h"
#include "ops/pooling.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(max_pool2d_pick) {
  Operator op;
  op.name = "max_pool2d_pick";
  op.op_class = OpClass::movement;
  op.doc = "The elements of the images at max_pool2d's positions; the gradient of max_pool2d_grad.";
  op.min_operands = op.max_operands = 2;
  op.attributes = ops::pooling_attributes();
  op.types = [](const TypeContext& c) {
    const Type &x = c.operands[0], &positions = c.operands[1];
    const Shape pooled = ops::pooling_result(x.shape, c);
    if ((positions.dtype != i64 && positions.dtype != i32) || positions.shape != pooled)
      c.error(fmt::format("positions must be i64{}, or i32", pooled.str()));
    return std::vector<Type>{{x.dtype, pooled}};
  };
  op.element = [](ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
    const Scalar width = b.integer(i64, c.operands[0].shape[3].size()),
                 position = b.cast(b.load(1, index), i64);
    const Scalar at[] = {index[0], index[1], b.div(position, width),
                         b.binary(ScalarOp::rem, position, width)};
    return b.load(0, at);
  };
  op.gradient = [](const GradientContext& c) {
    return std::vector<Value>{c.graph.add("max_pool2d_grad", {c.result_gradients[0], c.operands[1]},
                                          ops::pooling_attributes_of(c.node, &c.type(c.operands[0]).shape)),
                              {}};
  };
  for (const ops::PoolingSample& s : ops::pooling_samples())
    for (const DType dtype : {i64, i32}) {
      Sample sample{.operands = {{s.dtype, s.x}, {dtype, s.y}}, .attributes = s.attributes};
      sample.values[1] = ops::pooling_sample_positions(s);
      op.samples.push_back(std::move(sample));
    }
  return op;
}
