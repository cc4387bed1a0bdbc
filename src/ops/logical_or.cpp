#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(logical_or) {
  Operator op = ops::elementwise_binary("logical_or", "a or b", {boolean});
  set_scalar(op, ScalarOp::logical_or);
  op.differentiable = false;
  op.onnx = {"Or"};
  return op;
}
