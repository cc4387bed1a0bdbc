#include "ops/norm.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

struct Normalised {
  Value x, scale;  // (x − mean) / deviation and 1 / deviation
};

Normalised normalise(ops::Build& b, Value x, const Attributes& attributes) {
  const auto axes = ops::trailing_axes(attributes.integer("axis"), b.shape(x).rank());
  x = b.widen(x);
  // Two passes: the mean of squares minus the square of the mean would cancel.
  const Value centred = b.sub(x, b.mean(x, axes, true));
  const Value variance = b.mean(b.mul(centred, centred), axes, true);
  const Value scale = b.unary("rsqrt", b.add(variance, attributes.number("eps")));
  return {b.mul(centred, scale), scale};
}

std::vector<Value> layer_norm_body(Graph& graph, std::span<const Value> operands,
                                   const Attributes& attributes) {
  ops::Build b(graph);
  Value y = normalise(b, operands[0], attributes).x;
  if (operands.size() > 1) y = b.mul(y, b.widen(operands[1]));
  if (operands.size() > 2) y = b.add(y, b.widen(operands[2]));
  return {b.cast(y, b.dtype(operands[0]))};
}

std::vector<Value> layer_norm_gradient(const GradientContext& c) {
  ops::Build b(c.graph);
  const auto axes = ops::trailing_axes(c.node.attributes.integer("axis"), b.shape(c.operands[0]).rank());
  const Normalised n = normalise(b, c.operands[0], c.node.attributes);
  const Value g = b.widen(c.result_gradients[0]);
  Value weighted = g;
  std::vector<Value> parts(c.operands.size());
  if (parts.size() > 1) {
    const Type weight = c.type(c.operands[1]);
    weighted = b.mul(g, b.widen(c.operands[1]));
    parts[1] = b.cast(b.sum_to(b.mul(g, n.x), weight.shape), weight.dtype);
  }
  if (parts.size() > 2) {
    const Type bias = c.type(c.operands[2]);
    parts[2] = b.cast(b.sum_to(g, bias.shape), bias.dtype);
  }
  const Value along = b.mul(n.x, b.mean(b.mul(weighted, n.x), axes, true));
  const Value dx = b.mul(b.sub(b.sub(weighted, b.mean(weighted, axes, true)), along), n.scale);
  parts[0] = b.cast(dx, b.dtype(c.operands[0]));
  return parts;
}

}  // namespace

MILLRACE_OPERATOR(layer_norm) {
  Operator op;
  op.name = "layer_norm";
  op.op_class = OpClass::composite;
  op.doc =
      "(x − mean) / sqrt(variance + eps) over `axis` and all axes after it, times an optional weight, plus "
      "an optional "
      "bias, both of the shape of those axes. Computed in f32 for 16-bit floats. (Ba, Kiros, Hinton, 2016)";
  op.max_operands = 3;
  op.attributes = {{"axis", Attribute(int64_t{-1}), "the first normalised axis"},
                   {"eps", Attribute(1e-5), "added to the variance"}};
  op.types = ops::trailing_norm_types;
  op.body = layer_norm_body;
  op.gradient = layer_norm_gradient;
  op.onnx = {"LayerNormalization"};
  op.samples = ops::trailing_norm_samples(3);
  return op;
}
