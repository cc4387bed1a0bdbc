#include <millrace/onnx_rule.h>

#include "base/format.h"
#include "ops/convolution.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

/// A transposed convolution, whose output padding fills the rows and columns that a stride leaves over.
std::vector<std::string> transposed_convolution(const OnnxCall& c) {
  const auto &strides = c.attributes().ints("strides"), &pads = c.attributes().ints("pads"),
             &dilations = c.attributes().ints("dilations");
  const Shape &result = c.node.types[0].shape, &from = c.types[0].shape, &window = c.types[1].shape;
  std::vector<int64_t> extra;
  for (int d = 0; d < 2; ++d)
    extra.push_back(result[d + 2].size() -
                    ((from[d + 2].size() - 1) * strides[d] + (window[d + 2].size() - 1) * dilations[d] + 1 -
                     pads[d] - pads[d + 2]));
  return c.one("ConvTranspose", c.operands,
               {{"strides", strides},
                {"pads", pads},
                {"dilations", dilations},
                {"output_padding", extra},
                {"group", c.attributes().integer("groups")}});
}

}  // namespace

MILLRACE_OPERATOR(conv2d_input_grad) {
  Operator op = ops::convolution_operator(
      "conv2d_input_grad",
      "The gradient of conv2d(x, w) with respect to x, from dy and w; also the transposed convolution of "
      "dy.");
  op.attributes.push_back({"input_shape", AttributeType::shape, "the shape of x"});
  op.types = [](const TypeContext& c) {
    const Type &dy = c.operands[0], &w = c.operands[1];
    if (dy.dtype != w.dtype || !dy.dtype.is_float())
      c.error("gradient and weights must have the same float dtype");
    const Shape& x = c.attributes.shape("input_shape");
    const Shape y = ops::convolution_result(x, w.shape, c);
    if (y != dy.shape)
      c.error(fmt::format("an input of shape {} gives {}, but the gradient has shape {}", x.str(), y.str(),
                          dy.shape.str()));
    return std::vector<Type>{{dy.dtype, x}};
  };
  // Linear in both operands.
  op.gradient = [](const GradientContext& c) {
    const Value dy = c.operands[0], w = c.operands[1], g = c.result_gradients[0];
    return std::vector<Value>{
        c.graph.add("conv2d", {g, w}, ops::convolution_attributes_of(c.node)),
        c.graph.add("conv2d_weight_grad", {g, dy},
                    ops::convolution_attributes_of(c.node, {"weight_shape", c.type(w).shape}))};
  };
  op.onnx = {"ConvTranspose"};
  op.onnx_rule = transposed_convolution;
  op.flops = [](const Graph& graph, const Node& node) {
    return ops::convolution_flops(node.types[0].shape, graph.type(node.operands[1]).shape, node.attributes);
  };
  for (const ops::ConvolutionSample& s : ops::convolution_samples()) {
    Sample sample{.operands = {{s.dtype, s.y}, {s.dtype, s.w}}, .attributes = s.attributes};
    sample.attributes.set("input_shape", s.x);
    op.samples.push_back(std::move(sample));
  }
  return op;
}
