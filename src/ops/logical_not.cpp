#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(logical_not) {
  Operator op = ops::elementwise_unary("logical_not", "not a", {boolean});
  set_scalar(op, ScalarOp::logical_not);
  op.differentiable = false;
  op.onnx = {"Not"};
  return op;
}
