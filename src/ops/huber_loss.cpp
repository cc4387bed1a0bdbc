#include "ops/loss.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(huber_loss) {
  Operator op = ops::elementwise_loss(
      "huber_loss",
      "With d = prediction − target: d²/2 where |d| ≤ delta, else delta · (|d| − delta/2); reduced over all "
      "elements. "
      "(Huber, 1964)",
      [](ops::Build& b, Value prediction, Value target, const Attributes& attributes) {
        const double delta = attributes.number("delta");
        const Value d = b.sub(prediction, target), size = b.unary("abs", d);
        return b.select(b.binary("less_equal", size, b.fill(size, delta)), b.mul(b.mul(d, d), 0.5),
                        b.mul(b.sub(size, delta / 2), delta));
      });
  const AttributeSpec bend("delta", Attribute(1.0), "where the parabola becomes a line",
                           {.low = 0, .above = true});
  op.attributes.push_back(bend);
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const double delta = c.node.attributes.number("delta");
    const Value d = b.sub(b.widen(c.operands[0]), b.widen(c.operands[1]));
    const Value slope = c.graph.add("clamp", {d}, {{"low", -delta}, {"high", delta}});
    const Value g = ops::spread_loss_gradient(b, c.result_gradients[0], Shape(b.shape(d)), c.node.attributes);
    const Value dx = b.cast(b.mul(g, slope), b.dtype(c.operands[0]));
    return std::vector<Value>{dx, b.neg(dx)};
  };
  op.samples.push_back({.operands = {{f64, {9}}, {f64, {9}}}, .attributes = {{"delta", 0.5}}});
  return op;
}
