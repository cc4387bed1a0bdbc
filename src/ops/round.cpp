#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(round) {
  Operator op = ops::elementwise_unary("round", "x rounded to a whole number, halves to the even one");
  set_scalar(op, ScalarOp::round_even);
  op.differentiable = false;
  ops::set_range(op, -5, 5);
  op.onnx = {"Round"};
  return op;
}
