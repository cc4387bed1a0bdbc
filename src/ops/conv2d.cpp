#include <millrace/onnx_rule.h>

#include "ops/convolution.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(conv2d) {
  Operator op = ops::convolution_operator(
      "conv2d",
      "2-D convolution (cross-correlation) of x [batch, channels, height, width] with weights [output "
      "channels, "
      "channels / groups, height, width].");
  op.types = [](const TypeContext& c) {
    const Type &x = c.operands[0], &w = c.operands[1];
    if (x.dtype != w.dtype || !x.dtype.is_float())
      c.error("input and weights must have the same float dtype");
    return std::vector<Type>{{x.dtype, ops::convolution_result(x.shape, w.shape, c)}};
  };
  op.gradient = [](const GradientContext& c) {
    const Value x = c.operands[0], w = c.operands[1], g = c.result_gradients[0];
    return std::vector<Value>{
        c.graph.add("conv2d_input_grad", {g, w},
                    ops::convolution_attributes_of(c.node, {"input_shape", c.type(x).shape})),
        c.graph.add("conv2d_weight_grad", {x, g},
                    ops::convolution_attributes_of(c.node, {"weight_shape", c.type(w).shape}))};
  };
  op.onnx = {"Conv"};
  op.onnx_rule = [](const OnnxCall& c) {
    return c.one("Conv", c.operands,
                 {{"strides", c.attributes().ints("strides")},
                  {"pads", c.attributes().ints("pads")},
                  {"dilations", c.attributes().ints("dilations")},
                  {"group", c.attributes().integer("groups")}});
  };
  op.flops = [](const Graph& graph, const Node& node) {
    return ops::convolution_flops(graph.type(node.operands[0]).shape, graph.type(node.operands[1]).shape,
                                  node.attributes);
  };
  for (const ops::ConvolutionSample& s : ops::convolution_samples())
    op.samples.push_back({.operands = {{s.dtype, s.x}, {s.dtype, s.w}}, .attributes = s.attributes});
  return op;
}
