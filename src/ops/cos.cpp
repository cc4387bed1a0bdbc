#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(cos) {
  Operator op = ops::elementwise_unary("cos", "The cosine; x in radians");
  set_scalar(op, ScalarOp::cos);
  op.gradient = ops::unary_gradient(
      [](ops::Build& b, Value g, Value x, Value) { return b.neg(b.mul(g, b.unary("sin", x))); });
  ops::set_range(op, -7, 7);
  op.errors = ErrorGrowth::large;
  op.repeat = Repeat::costly;
  op.onnx = {"Cos"};
  return op;
}
