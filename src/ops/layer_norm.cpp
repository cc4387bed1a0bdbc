#include "ops/norm.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

std::vector<Value> layer_norm_body(Graph& graph, std::span<const Value> operands,
                                   const Attributes& attributes) {
  ops::Build b(graph);
  Value y = ops::normalise(b, operands[0], attributes).x;
  if (operands.size() > 1) y = b.mul(y, b.widen(operands[1]));
  if (operands.size() > 2) y = b.add(y, b.widen(operands[2]));
  return {b.cast(y, b.dtype(operands[0]))};
}

std::vector<Value> layer_norm_gradient(const GradientContext& c) {
  std::vector<Value> operands = {c.operands[0], c.result_gradients[0]};
  if (c.operands.size() > 1) operands.push_back(c.operands[1]);
  Attributes attributes = c.node.attributes;
  attributes.set("bias", c.operands.size() > 2);
  const Value first = c.graph.add("layer_norm_grad", operands, attributes);
  std::vector<Value> parts;
  for (size_t k = 0; k < c.operands.size(); ++k) {
    const Value part{first.node, static_cast<int32_t>(k)};
    // The gradient of a bias has the weight's type.
    parts.push_back(ops::Build(c.graph).cast(part, c.type(c.operands[k]).dtype));
  }
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
                   {"eps", Attribute(1e-5), "added to the variance", {.low = 0}}};
  op.types = ops::trailing_norm_types;
  op.body = layer_norm_body;
  op.gradient = layer_norm_gradient;
  op.onnx = {"LayerNormalization"};
  op.samples = ops::trailing_norm_samples(3);
  return op;
}
