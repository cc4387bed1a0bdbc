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
  op.gradient = ops::unary_gradient([](ops::Build& b, Value g, Value, Value y) {
    return b.mul(b.mul(g, -0.5), b.mul(y, b.unary("square", y)));
  });
  ops::set_range(op, 0.1, 4);
  op.errors = ErrorGrowth::large;
  op.repeat = Repeat::costly;
  op.onnx_rule = [](const OnnxCall& c) { return c.one("Reciprocal", {c.onnx.node("Sqrt", c.operands)}); };
  return op;
}
