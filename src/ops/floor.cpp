#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(floor) {
  Operator op = ops::elementwise_unary("floor", "The largest whole number ≤ x");
  set_scalar(op, ScalarOp::floor);
  op.differentiable = false;
  ops::set_range(op, -5, 5);
  op.onnx = {"Floor"};
  return op;
}
