#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(exp) {
  Operator op = ops::elementwise_unary("exp", "e to the power x");
  set_scalar(op, ScalarOp::exp);
  op.gradient = ops::unary_gradient([](ops::Build& b, Value g, Value, Value y) { return b.mul(g, y); });
  op.errors = ErrorGrowth::large;
  op.repeat = Repeat::costly;
  op.lowest = 0;
  op.onnx = {"Exp"};
  return op;
}
