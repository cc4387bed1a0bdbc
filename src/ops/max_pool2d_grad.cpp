#include "base/format.h"
#include "ops/build.h"
#include "ops/pooling.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

/// With respect to dy: what arrived, at the positions.
std::vector<Value> max_pool2d_grad_gradient(const GradientContext& c) {
  ops::Build b(c.graph);
  const Value g = c.result_gradients[0], positions = c.operands[1];
  const Shape x = b.shape(g), y = b.shape(positions);
  const Dim images = x[0] * x[1], pixels = x[2] * x[3];
  const Shape windows{images, y[2] * y[3]};
  const Value first =
      b.mul(c.graph.add("iota", {}, {{"shape", windows}}), static_cast<double>(pixels.size()));
  const Value at = b.add(b.reshape(b.cast(positions, i64), windows), first);
  return {b.reshape(c.graph.add("gather", {b.reshape(g, {images * pixels}), at}), y), {}};
}

}  // namespace

MILLRACE_OPERATOR(max_pool2d_grad) {
  Operator op = ops::pooling_operator(
      "max_pool2d_grad",
      "The gradient of max_pool2d's values: every element of dy goes to its window's position, in images of "
      "shape "
      "input_shape. A position must lie in its window.",
      {{"input_shape", AttributeType::shape, "the shape of the images"}});
  op.min_operands = op.max_operands = 2;
  op.types = [](const TypeContext& c) {
    const Type &dy = c.operands[0], &positions = c.operands[1];
    const Shape& x = c.attributes.shape("input_shape");
    const Shape pooled = ops::pooling_result(x, c);
    if (positions.dtype != i64 && positions.dtype != i32) c.error("positions are i64 or i32");
    if (dy.shape != pooled || positions.shape != pooled)
      c.error(fmt::format("gradient and positions must have shape {}", pooled.str()));
    return std::vector<Type>{{dy.dtype, x}};
  };
  op.element = [](ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
    const ops::Pooling p = ops::pooling(c.node.attributes.shape("input_shape"), c.node.attributes);
    const Scalar here = b.add(b.mul(index[2], b.integer(i64, p.width)), index[3]);
    const Scalar own = b.cast(here, c.operands[1].dtype);
    const Scalar zero = b.constant(c.operands[0].dtype, 0);
    Scalar sum = zero;
    ops::for_windows_of(b, p, index, [&](Scalar inside, Scalar row, Scalar column) {
      const Scalar at[] = {index[0], index[1], row, column};
      const Scalar position = b.load_if(inside, 1, at, b.integer(c.operands[1].dtype, -1));
      const Scalar dy = b.load_if(inside, 0, at, zero);
      sum = b.add(sum, b.select(b.equal(position, own), dy, zero));
    });
    return sum;
  };
  op.gradient = max_pool2d_grad_gradient;
  for (const ops::PoolingSample& s : ops::pooling_samples())
    for (const DType dtype : {i64, i32}) {
      Sample sample{.operands = {{s.dtype, s.y}, {dtype, s.y}}, .attributes = s.attributes};
      sample.attributes.set("input_shape", s.x);
      sample.values[1] = ops::pooling_sample_positions(s);
      op.samples.push_back(std::move(sample));
    }
  return op;
}
