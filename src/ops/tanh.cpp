#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(tanh) {
  Operator op = ops::elementwise_unary("tanh", "The hyperbolic tangent");
  set_scalar(op, ScalarOp::tanh);
  op.gradient = ops::unary_gradient([](ops::Build& b, Value g, Value, Value y) {
    const Value square = b.unary("square", y);
    return b.mul(g, b.sub(b.fill(square, 1), square));
  });
  ops::set_range(op, -4, 4);
  op.arithmetic = Arithmetic::follows;
  op.repeat = Repeat::costly;
  op.onnx = {"Tanh"};
  return op;
}
