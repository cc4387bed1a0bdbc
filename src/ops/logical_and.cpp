#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(logical_and) {
  Operator op = ops::elementwise_binary("logical_and", "a and b", {boolean});
  set_scalar(op, ScalarOp::logical_and);
  op.differentiable = false;
  op.onnx = {"And"};
  return op;
}
