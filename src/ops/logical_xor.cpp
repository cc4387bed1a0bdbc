#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(logical_xor) {
  Operator op = ops::elementwise_binary("logical_xor", "Either a or b", {boolean});
  set_scalar(op, ScalarOp::not_equal);
  op.differentiable = false;
  op.onnx = {"Xor"};
  return op;
}
