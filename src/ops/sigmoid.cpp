#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(sigmoid) {
  Operator op = ops::elementwise_unary("sigmoid", "1 / (1 + exp(−x))");
  set_scalar(op, ScalarOp::sigmoid);
  op.gradient = ops::unary_gradient(
      [](ops::Build& b, Value g, Value, Value y) { return b.mul(g, b.mul(y, b.sub(b.fill(y, 1), y))); });
  ops::set_range(op, -6, 6);
  op.arithmetic = Arithmetic::follows;
  op.repeat = Repeat::costly;
  op.lowest = 0;
  op.highest = 1;
  op.onnx = {"Sigmoid"};
  return op;
}
