#include <cmath>
#include <numbers>

#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(erf) {
  Operator op = ops::elementwise_unary("erf", "The error function");
  set_scalar(op, ScalarOp::erf);
  op.gradient = ops::unary_gradient([](ops::Build& b, Value g, Value x, Value) {
    const Value bell = b.unary("exp", b.neg(b.unary("square", x)));
    return b.mul(b.mul(g, 2 / std::sqrt(std::numbers::pi)), bell);
  });
  ops::set_range(op, -3, 3);
  op.arithmetic = Arithmetic::follows;
  op.repeat = Repeat::costly;
  op.onnx = {"Erf"};
  return op;
}
