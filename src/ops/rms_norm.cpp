#include "ops/axis.h"
#include "ops/norm.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

/// 1 / sqrt(mean(x²) + eps)
Value scale_of(ops::Build& b, Value x, const Attributes& attributes) {
  const auto axes = ops::trailing_axes(attributes.integer("axis"), b.shape(x).rank());
  return b.unary("rsqrt", b.add(b.mean(b.mul(x, x), axes, true), attributes.number("eps")));
}

std::vector<Value> rms_norm_gradient(const GradientContext& c) {
  ops::Build b(c.graph);
  const Value x = b.widen(c.operands[0]), g = b.widen(c.result_gradients[0]);
  const auto axes = ops::trailing_axes(c.node.attributes.integer("axis"), b.shape(x).rank());
  const Value scale = scale_of(b, x, c.node.attributes), normalised = b.mul(x, scale);
  Value weighted = g;
  std::vector<Value> parts(c.operands.size());
  if (parts.size() > 1) {
    const Type weight = c.type(c.operands[1]);
    weighted = b.mul(g, b.widen(c.operands[1]));
    parts[1] = b.cast(b.sum_to(b.mul(g, normalised), weight.shape), weight.dtype);
  }
  const Value along = b.mul(normalised, b.mean(b.mul(weighted, normalised), axes, true));
  parts[0] = b.cast(b.mul(b.sub(weighted, along), scale), b.dtype(c.operands[0]));
  return parts;
}

}  // namespace

MILLRACE_OPERATOR(rms_norm) {
  Operator op;
  op.name = "rms_norm";
  op.op_class = OpClass::composite;
  op.doc =
      "x / sqrt(mean(x²) + eps) over `axis` and all axes after it, times an optional weight of the shape of "
      "those axes. "
      "Computed in f32 for 16-bit floats. (Zhang, Sennrich, 2019)";
  op.max_operands = 2;
  op.attributes = {{"axis", Attribute(int64_t{-1}), "the first normalised axis"},
                   {"eps", Attribute(1e-6), "added to the mean of squares", {.low = 0}}};
  op.types = ops::trailing_norm_types;
  op.body = [](Graph& graph, std::span<const Value> operands, const Attributes& attributes) {
    ops::Build b(graph);
    const Value x = b.widen(operands[0]);
    Value y = b.mul(x, scale_of(b, x, attributes));
    if (operands.size() > 1) y = b.mul(y, b.widen(operands[1]));
    return std::vector<Value>{b.cast(y, b.dtype(operands[0]))};
  };
  op.gradient = rms_norm_gradient;
  op.samples = ops::trailing_norm_samples(2);
  return op;
}
