#include "base/format.h"
#include "ops/convolution.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(conv2d_weight_grad) {
  Operator op = ops::convolution_operator("conv2d_weight_grad",
                                          "The gradient of conv2d(x, w) with respect to w, from x and dy.");
  op.attributes.push_back({"weight_shape", AttributeType::shape, "the shape of w"});
  op.types = [](const TypeContext& c) {
    const Type &x = c.operands[0], &dy = c.operands[1];
    if (x.dtype != dy.dtype || !x.dtype.is_float())
      c.error("input and gradient must have the same float dtype");
    const Shape& w = c.attributes.shape("weight_shape");
    const Shape y = ops::convolution_result(x.shape, w, c);
    if (y != dy.shape)
      c.error(fmt::format("weights of shape {} give {}, but the gradient has shape {}", w.str(), y.str(),
                          dy.shape.str()));
    return std::vector<Type>{{x.dtype, w}};
  };
  // Linear in both operands.
  op.gradient = [](const GradientContext& c) {
    const Value x = c.operands[0], dy = c.operands[1], g = c.result_gradients[0];
    return std::vector<Value>{
        c.graph.add("conv2d_input_grad", {dy, g},
                    ops::convolution_attributes_of(c.node, {"input_shape", c.type(x).shape})),
        c.graph.add("conv2d", {x, g}, ops::convolution_attributes_of(c.node))};
  };
  op.flops = [](const Graph& graph, const Node& node) {
    return ops::convolution_flops(graph.type(node.operands[0]).shape, node.types[0].shape, node.attributes);
  };
  op.tolerance.f32 = 2e-4;
  for (const ops::ConvolutionSample& s : ops::convolution_samples()) {
    Sample sample{.operands = {{s.dtype, s.x}, {s.dtype, s.y}}, .attributes = s.attributes};
    sample.attributes.set("weight_shape", s.w);
    op.samples.push_back(std::move(sample));
  }
  return op;
}
