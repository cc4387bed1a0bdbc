#include <cmath>
#include <numbers>

#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(erf) {
  Operator op = ops::elementwise_unary("erf", "The error function");
  set_scalar(op, ScalarOp::erf);
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const Value g = c.result_gradients[0];
    const Value bell = b.unary("exp", b.neg(b.unary("square", c.operands[0])));
    return std::vector<Value>{b.mul(b.mul(g, 2 / std::sqrt(std::numbers::pi)), bell)};
  };
  ops::set_range(op, -3, 3);
  op.arithmetic = Arithmetic::follows;
  op.repeat = Repeat::costly;
  op.onnx = {"Erf"};
  return op;
}
