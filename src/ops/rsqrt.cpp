#include <millrace/onnx_rule.h>

#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(rsqrt) {
  Operator op = ops::elementwise_unary("rsqrt", "1 / sqrt(x)");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.div(b.constant(b.dtype(x[0]), 1), b.unary(ScalarOp::sqrt, x[0]));
  };
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const Value y = c.results[0];
    return std::vector<Value>{b.mul(b.mul(c.result_gradients[0], -0.5), b.mul(y, b.unary("square", y)))};
  };
  ops::set_range(op, 0.1, 4);
  op.errors = ErrorGrowth::large;
  op.repeat = Repeat::costly;
  op.onnx_rule = [](const OnnxCall& c) { return c.one("Reciprocal", {c.onnx.node("Sqrt", c.operands)}); };
  return op;
}
