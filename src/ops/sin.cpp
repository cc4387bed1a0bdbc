#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(sin) {
  Operator op = ops::elementwise_unary("sin", "The sine; x in radians");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.unary(ScalarOp::sin, x[0]);
  };
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    return std::vector<Value>{b.mul(c.result_gradients[0], b.unary("cos", c.operands[0]))};
  };
  ops::set_range(op, -7, 7);
  op.onnx = {"Sin"};
  return op;
}
