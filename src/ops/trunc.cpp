#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(trunc) {
  Operator op = ops::elementwise_unary("trunc", "x rounded toward zero");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.unary(ScalarOp::trunc, x[0]);
  };
  op.differentiable = false;
  ops::set_range(op, -5, 5);
  return op;
}
