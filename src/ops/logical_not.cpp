#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(logical_not) {
  Operator op = ops::elementwise_unary("logical_not", "not a", {boolean});
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.unary(ScalarOp::logical_not, x[0]);
  };
  op.differentiable = false;
  op.onnx = {"Not"};
  return op;
}
