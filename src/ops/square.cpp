#include <millrace/onnx_rule.h>

#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(square) {
  Operator op =
      ops::elementwise_unary("square", "x · x", {f32, f64, bf16, f16, i8, u8, i16, u16, i32, u32, i64, u64});
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) { return b.mul(x[0], x[0]); };
  op.gradient =
      ops::unary_gradient([](ops::Build& b, Value g, Value x, Value) { return b.mul(b.mul(g, 2), x); });
  op.arithmetic = Arithmetic::follows;
  op.keeps_zero = [](const Node&) { return true; };
  op.lowest = 0;
  op.onnx_rule = [](const OnnxCall& c) { return c.one("Mul", {c.operands[0], c.operands[0]}); };
  return op;
}
