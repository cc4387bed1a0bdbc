#include <millrace/onnx_rule.h>

#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(stop_gradient) {
  Operator op = ops::elementwise_unary("stop_gradient", "The operand itself, a constant to gradients",
                                       {f32, f64, bf16, f16, i8, u8, i16, u16, i32, u32, i64, u64, boolean});
  op.scalar = [](ScalarBuilder&, std::span<const Scalar> x, const Node&) { return x[0]; };
  op.differentiable = false;
  op.onnx_rule = [](const OnnxCall& c) { return c.one("Identity", c.operands); };
  return op;
}
