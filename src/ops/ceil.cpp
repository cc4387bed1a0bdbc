#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(ceil) {
  Operator op = ops::elementwise_unary("ceil", "The smallest whole number ≥ x");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.unary(ScalarOp::ceil, x[0]);
  };
  op.differentiable = false;
  ops::set_range(op, -5, 5);
  op.onnx = {"Ceil"};
  return op;
}
