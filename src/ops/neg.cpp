#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(neg) {
  Operator op = ops::elementwise_unary("neg", "−x", {f32, f64, bf16, f16, i8, i16, i32, i64});
  set_scalar(op, ScalarOp::neg);
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    return std::vector<Value>{b.neg(c.result_gradients[0])};
  };
  op.arithmetic = Arithmetic::follows;
  op.keeps_zero = [](const Node&) { return true; };
  op.onnx = {"Neg"};
  return op;
}
