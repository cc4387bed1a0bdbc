#include "base/format.h"
#include "ops/pooling.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(avg_pool2d_grad) {
  Operator op = ops::pooling_operator(
      "avg_pool2d_grad",
      "The gradient of avg_pool2d: every element of dy spread over its window in images of shape "
      "input_shape.",
      {{"count_include_pad", Attribute(true), "as in avg_pool2d"},
       {"input_shape", AttributeType::shape, "the shape of the images"}});
  op.types = [](const TypeContext& c) {
    const Type& dy = c.operands[0];
    const Shape& x = c.attributes.shape("input_shape");
    const Shape pooled = ops::pooling_result(x, c);
    if (dy.shape != pooled) c.error(fmt::format("the gradient must have shape {}", pooled.str()));
    return std::vector<Type>{{dy.dtype, x}};
  };
  op.element = [](ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
    const ops::Pooling p = ops::pooling(c.node.attributes.shape("input_shape"), c.node.attributes);
    const Scalar zero = b.constant(c.operands[0].dtype, 0);
    Scalar sum = zero;
    ops::for_windows_of(b, p, index, [&](Scalar inside, Scalar row, Scalar column) {
      const Scalar at[] = {index[0], index[1], row, column};
      const Scalar dy = b.load_if(inside, 0, at, zero);
      sum = b.add(sum, ops::divide_by_window(b, p, dy, row, column, c.node.attributes));
    });
    return sum;
  };
  op.gradient = [](const GradientContext& c) {
    return std::vector<Value>{
        c.graph.add("avg_pool2d", {c.result_gradients[0]}, ops::pooling_attributes_of(c.node))};
  };
  for (const ops::PoolingSample& s : ops::pooling_samples()) {
    Sample sample{.operands = {{s.dtype, s.y}}, .attributes = s.attributes};
    sample.attributes.set("input_shape", s.x);
    op.samples.push_back(sample);
    sample.attributes.set("count_include_pad", false);
    op.samples.push_back(sample);
  }
  return op;
}
