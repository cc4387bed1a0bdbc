#include "ops/axis.h"
#include "ops/norm.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

std::vector<Type> layer_norm_grad_types(const TypeContext& c) {
  const Type &x = c.operands[0], &g = c.operands[1];
  if (!x.dtype.is_float()) c.error("dtype is not supported");
  if (g != x) c.error("the result's gradient must be " + x.str());
  const int64_t axis = ops::checked_axis(c, x.shape.rank());
  const bool bias = c.attributes.flag("bias"), weight = c.operands.size() > 2;
  if (bias && !weight) c.error("a bias comes with a weight");
  std::vector<Type> types = {x};
  if (weight) {
    ops::check_parameter(c, 2, "the weight", Shape(x.shape.begin() + axis, x.shape.end()));
    types.push_back(c.operands[2]);
  }
  if (bias) types.push_back(c.operands[2]);
  return types;
}

std::vector<Value> layer_norm_grad_body(Graph& graph, std::span<const Value> operands,
                                        const Attributes& attributes) {
  ops::Build b(graph);
  const auto axes = ops::trailing_axes(attributes.integer("axis"), b.shape(operands[0]).rank());
  const ops::Normalised n = ops::normalise(b, operands[0], attributes);
  const Value g = b.widen(operands[1]);
  Value weighted = g;
  std::vector<Value> parts(1);
  if (operands.size() > 2) {
    const Type weight = b.type(operands[2]);
    weighted = b.mul(g, b.widen(operands[2]));
    parts.push_back(b.cast(b.sum_to(b.mul(g, n.x), weight.shape), weight.dtype));
    if (attributes.flag("bias")) parts.push_back(b.cast(b.sum_to(g, weight.shape), weight.dtype));
  }
  const Value along = b.mul(n.x, b.mean(b.mul(weighted, n.x), axes, true));
  const Value dx = b.mul(b.sub(b.sub(weighted, b.mean(weighted, axes, true)), along), n.scale);
  parts[0] = b.cast(dx, b.dtype(operands[0]));
  return parts;
}

}  // namespace

MILLRACE_OPERATOR(layer_norm_grad) {
  Operator op;
  op.name = "layer_norm_grad";
  op.op_class = OpClass::composite;
  op.doc =
      "The gradients of layer_norm with respect to x and, where there are, weight and bias. Operands: x, the "
      "gradient of the "
      "result, and the weight if there was one.";
  op.min_operands = 2;
  op.max_operands = 3;
  op.attributes = {{"axis", Attribute(int64_t{-1}), "the first normalised axis"},
                   {"eps", Attribute(1e-5), "added to the variance", {.low = 0}},
                   {"bias", Attribute(false), "whether there was a bias"}};
  op.types = layer_norm_grad_types;
  op.body = layer_norm_grad_body;
  op.tolerance = {.f32 = 5e-5, .f64 = 1e-11, .half = 3e-2};
  for (const Sample& norm : ops::trailing_norm_samples(3)) {
    Sample sample = norm;
    sample.operands.insert(sample.operands.begin() + 1, sample.operands[0]);
    if (sample.operands.size() > 3) {
      sample.operands.pop_back();
      sample.attributes.set("bias", true);
    }
    op.samples.push_back(std::move(sample));
  }
  return op;
}
