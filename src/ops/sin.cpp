#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(sin) {
  Operator op = ops::elementwise_unary("sin", "The sine; x in radians");
  set_scalar(op, ScalarOp::sin);
  op.gradient =
      ops::unary_gradient([](ops::Build& b, Value g, Value x, Value) { return b.mul(g, b.unary("cos", x)); });
  ops::set_range(op, -7, 7);
  op.errors = ErrorGrowth::large;
  op.repeat = Repeat::costly;
  op.onnx = {"Sin"};
  return op;
}
