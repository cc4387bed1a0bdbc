#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(ceil) {
  Operator op = ops::elementwise_unary("ceil", "The smallest whole number ≥ x");
  set_scalar(op, ScalarOp::ceil);
  op.differentiable = false;
  ops::set_range(op, -5, 5);
  op.onnx = {"Ceil"};
  return op;
}
