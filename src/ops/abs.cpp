#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(abs) {
  Operator op =
      ops::elementwise_unary("abs", "|x|; the gradient at 0 is 0", {f32, f64, bf16, f16, i8, i16, i32, i64});
  set_scalar(op, ScalarOp::abs);
  op.gradient = ops::unary_gradient(
      [](ops::Build& b, Value g, Value x, Value) { return b.mul(g, b.unary("sign", x)); });
  op.arithmetic = Arithmetic::follows;
  op.keeps_zero = [](const Node&) { return true; };
  op.lowest = 0;
  op.onnx = {"Abs"};
  return op;
}
