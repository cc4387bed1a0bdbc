#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(floor) {
  Operator op = ops::elementwise_unary("floor", "The largest whole number ≤ x");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.unary(ScalarOp::floor, x[0]);
  };
  op.differentiable = false;
  ops::set_range(op, -5, 5);
  op.onnx = {"Floor"};
  return op;
}
