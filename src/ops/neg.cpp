#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(neg) {
  Operator op = ops::elementwise_unary("neg", "−x", {f32, f64, bf16, f16, i8, i16, i32, i64});
  set_scalar(op, ScalarOp::neg);
  op.gradient = ops::unary_gradient([](ops::Build& b, Value g, Value, Value) { return b.neg(g); });
  op.arithmetic = Arithmetic::follows;
  op.keeps_zero = [](const Node&) { return true; };
  op.onnx = {"Neg"};
  return op;
}
