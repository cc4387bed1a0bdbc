#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(tanh) {
  Operator op = ops::elementwise_unary("tanh", "The hyperbolic tangent");
  set_scalar(op, ScalarOp::tanh);
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const Value g = c.result_gradients[0];
    const Value square = b.unary("square", c.results[0]);
    return std::vector<Value>{b.mul(g, b.sub(b.fill(square, 1), square))};
  };
  ops::set_range(op, -4, 4);
  op.arithmetic = Arithmetic::follows;
  op.repeat = Repeat::costly;
  op.onnx = {"Tanh"};
  return op;
}
