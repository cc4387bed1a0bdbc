#include <cmath>

#include "base/format.h"
#include "ops/loss.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

std::vector<Type> cross_entropy_types(const TypeContext& c) {
  const Type &logits = c.operands[0], &targets = c.operands[1];
  if (!logits.dtype.is_float()) c.error("the logits must be floats");
  if (targets.dtype != i64 && targets.dtype != i32) c.error("the targets must be class numbers, i64 or i32");
  if (logits.shape.rank() < 1) c.error("the logits must have the dimensions […, classes]");
  const Shape items(logits.shape.begin(), logits.shape.end() - 1);
  if (targets.shape != items)
    c.error(fmt::format("logits of shape {} need targets of shape {}", logits.shape.str(), items.str()));
  if (!logits.shape.back().is_static())
    c.error("the number of classes must be a number, not a named dimension");
  return {ops::loss_type(c, items)};
}

/// bool [..., classes]: true at the target.
Value hits(Graph& graph, Value targets, int64_t classes) {
  return graph.add("one_hot", {targets}, {{"depth", classes}, {"dtype", boolean}});
}

std::vector<Value> cross_entropy_body(Graph& graph, std::span<const Value> operands,
                                      const Attributes& attributes) {
  ops::Build b(graph);
  const Value x = b.widen(operands[0]), targets = operands[1];
  const int64_t classes = b.shape(x).back().size();
  const double smoothing = attributes.number("label_smoothing");
  // With z = x − max: log(sum(exp(z))) − z[target], so that log(softmax) is never stored.
  const Value z = b.sub(x, b.max(x, {-1}, true));
  // With the dimension kept this is the sum that the gradient's softmax computes, too.
  const Value sum = b.sum(b.unary("exp", z), {-1}, true);
  const Value normaliser = b.unary("log", b.reshape(sum, Shape(b.shape(targets))));
  const Value picked = b.sum(b.select(hits(graph, targets, classes), z, b.zeros(z)), {-1}, false);
  Value items = b.sub(normaliser, smoothing == 0 ? picked : b.mul(picked, 1 - smoothing));
  if (smoothing != 0) items = b.sub(items, b.mul(b.mean(z, {-1}, false), smoothing));
  // A target that is no class must not pass silently.
  const Value known = b.binary("logical_and", b.binary("greater_equal", targets, b.zeros(targets)),
                               b.binary("less", targets, b.fill(targets, static_cast<double>(classes))));
  return {ops::reduce_loss(b, b.select(known, items, b.fill(items, NAN)), attributes)};
}

/// softmax(x) − target distribution.
std::vector<Value> cross_entropy_gradient(const GradientContext& c) {
  ops::Build b(c.graph);
  const Value x = b.widen(c.operands[0]);
  const Shape shape = b.shape(x), items = b.shape(c.operands[1]);
  const int64_t classes = shape.back().size();
  const double smoothing = c.node.attributes.number("label_smoothing");
  const double other = smoothing / static_cast<double>(classes);
  const Value target = b.select(hits(c.graph, c.operands[1], classes),
                                b.scalar(b.dtype(x), 1 - smoothing + other), b.scalar(b.dtype(x), other));
  const Value g = ops::spread_loss_gradient(b, c.result_gradients[0], items, c.node.attributes);
  Shape column = items;
  column.push_back(1);
  const Value dx = b.mul(b.sub(b.softmax(x, -1), target), b.reshape(g, column));
  return {b.cast(dx, b.dtype(c.operands[0])), {}};
}

}  // namespace

MILLRACE_OPERATOR(cross_entropy) {
  Operator op;
  op.name = "cross_entropy";
  op.op_class = OpClass::composite;
  op.doc =
      "−log(softmax(logits)[target]) for logits [..., classes] and class numbers [...], f32 for 16-bit "
      "floats. "
      "label_smoothing s gives the target 1 − s + s/classes and every other class s/classes. A target that "
      "is no class "
      "gives NaN.";
  op.min_operands = op.max_operands = 2;
  op.attributes = {ops::reduction_attribute(),
                   {"label_smoothing", Attribute(0.0), "spread over all classes", {.low = 0, .high = 1}}};
  op.types = cross_entropy_types;
  op.body = cross_entropy_body;
  op.gradient = cross_entropy_gradient;
  op.logits = Logits::row;
  std::vector<Sample> samples = {{.operands = {{f32, {7, 10}}, {i64, {7}}}, .int_high = 9},
                                 {.operands = {{f64, {3, 4}}, {i64, {3}}}, .int_high = 3},
                                 {.operands = {{f32, {2, 3, 17}}, {i32, {2, 3}}}},
                                 {.operands = {{f32, {6}}, {i64, {}}}},
                                 {.operands = {{f32, {1, 1}}, {i64, {1}}}, .int_high = 0},
                                 {.operands = {{bf16, {5, 9}}, {i64, {5}}}},
                                 {.operands = {{f16, {5, 9}}, {i64, {5}}}},
                                 {.operands = {{f32, {0, 4}}, {i64, {0}}}, .check_gradient = false}};  // NaN
  for (size_t i = 0, count = samples.size(); i < count; ++i) {
    samples.push_back(samples[i]);
    samples.back().attributes.set("label_smoothing", 0.2);
  }
  op.samples = ops::with_reductions(samples);
  return op;
}
