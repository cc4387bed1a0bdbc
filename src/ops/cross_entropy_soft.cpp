#include "ops/loss.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

std::vector<Type> cross_entropy_soft_types(const TypeContext& c) {
  const Type &logits = c.operands[0], &targets = c.operands[1];
  if (!logits.dtype.is_float()) c.error("the logits must be floats");
  if (logits.shape.rank() < 1) c.error("the logits must have the dimensions […, classes]");
  if (targets != logits && targets != Type{ops::wide(logits.dtype), logits.shape})
    c.error("the targets must be floats of the logits' shape");
  if (!logits.shape.back().is_static())
    c.error("the number of classes must be a number, not a named dimension");
  return {ops::loss_type(c, Shape(logits.shape.begin(), logits.shape.end() - 1))};
}

/// t · (1 − s) + s / classes
Value smoothed(ops::Build& b, Value targets, const Attributes& attributes) {
  const double smoothing = attributes.number("label_smoothing");
  const Value t = b.widen(targets);
  if (smoothing == 0) return t;
  return b.add(b.mul(t, 1 - smoothing), smoothing / static_cast<double>(b.shape(t).back().size()));
}

std::vector<Value> cross_entropy_soft_gradient(const GradientContext& c) {
  ops::Build b(c.graph);
  const Value x = b.widen(c.operands[0]), t = smoothed(b, c.operands[1], c.node.attributes);
  const Shape shape = b.shape(x);
  const Shape items(shape.begin(), shape.end() - 1);
  Shape column = items;
  column.push_back(1);
  const Value g =
      b.reshape(ops::spread_loss_gradient(b, c.result_gradients[0], items, c.node.attributes), column);
  const Value dx = b.mul(b.sub(b.mul(b.softmax(x, -1), b.sum(t, {-1}, true)), t), g);
  const Value dt = b.mul(c.graph.add("log_softmax", {x}, {{"axis", int64_t{-1}}}),
                         b.mul(g, c.node.attributes.number("label_smoothing") - 1));
  return {b.cast(dx, b.dtype(c.operands[0])), b.cast(dt, b.dtype(c.operands[1]))};
}

}  // namespace

MILLRACE_OPERATOR(cross_entropy_soft) {
  Operator op;
  op.name = "cross_entropy_soft";
  op.op_class = OpClass::composite;
  op.doc =
      "−sum(targets · log(softmax(logits))) over the last dimension, for target distributions of the logits' "
      "shape; f32 "
      "for 16-bit floats. label_smoothing s mixes the targets with s/classes.";
  op.min_operands = op.max_operands = 2;
  op.attributes = {ops::reduction_attribute(),
                   {"label_smoothing", Attribute(0.0), "spread over all classes", {.low = 0, .high = 1}}};
  op.types = cross_entropy_soft_types;
  op.body = [](Graph& graph, std::span<const Value> operands, const Attributes& attributes) {
    ops::Build b(graph);
    const Value x = b.widen(operands[0]), t = smoothed(b, operands[1], attributes);
    const Value z = b.sub(x, b.max(x, {-1}, true));
    const Value normaliser = b.unary("log", b.sum(b.unary("exp", z), {-1}, true));
    const Value items = b.sum(b.mul(t, b.sub(normaliser, z)), {-1}, false);
    return std::vector<Value>{ops::reduce_loss(b, items, attributes)};
  };
  op.gradient = cross_entropy_soft_gradient;
  op.logits = Logits::row;
  const auto sample = [](DType logits, DType targets, const Shape& shape) {
    return Sample{.operands = {{logits, shape}, {targets, shape}}, .low = 0, .high = 1};
  };
  std::vector<Sample> samples = {sample(f32, f32, {7, 10}),    sample(f64, f64, {3, 4}),
                                 sample(f32, f32, {2, 3, 17}), sample(f32, f32, {6}),
                                 sample(f32, f32, {2, 1}),     sample(bf16, bf16, {5, 9}),
                                 sample(bf16, f32, {5, 9}),    sample(f16, f16, {5, 9})};
  samples.push_back(samples[1]);
  samples.back().attributes.set("label_smoothing", 0.2);
  samples.push_back(sample(f32, f32, {0, 4}));
  samples.back().check_gradient = false;  // the mean of nothing is NaN
  op.samples = ops::with_reductions(samples);
  return op;
}
