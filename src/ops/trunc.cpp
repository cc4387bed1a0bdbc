#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(trunc) {
  Operator op = ops::elementwise_unary("trunc", "x rounded toward zero");
  set_scalar(op, ScalarOp::trunc);
  op.differentiable = false;
  ops::set_range(op, -5, 5);
  return op;
}
