#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(sqrt) {
  Operator op = ops::elementwise_unary("sqrt", "The square root");
  set_scalar(op, ScalarOp::sqrt);
  op.gradient =
      ops::unary_gradient([](ops::Build& b, Value g, Value, Value y) { return b.div(b.mul(g, 0.5), y); });
  ops::set_range(op, 0.1, 4);
  op.errors = ErrorGrowth::large;
  op.repeat = Repeat::costly;
  op.lowest = 0;
  op.onnx = {"Sqrt"};
  return op;
}
