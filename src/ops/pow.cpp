#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(pow) {
  Operator op = ops::elementwise_binary("pow", "a raised to the power b", {f32, f64, bf16, f16});
  set_scalar(op, ScalarOp::pow);
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const Value g = c.result_gradients[0];
    const Value a = c.operands[0], z = c.operands[1];
    // Where a is 0 the terms are set to their limits: 0^0 and 0 · log 0 would spoil the sum with NaN.
    const Value zero = b.zeros(a), one = b.fill(a, 1);
    const Value a_zero = b.binary("equal", a, zero);
    const Value both = b.binary("logical_and", a_zero, b.binary("equal", z, zero));
    const Value exponent = b.select(both, one, b.sub(z, one));
    const Value da = b.mul(z, b.binary("pow", a, exponent));
    const Value db = b.mul(c.results[0], b.unary("log", b.select(a_zero, one, a)));
    return std::vector<Value>{b.mul(g, da), b.mul(g, db)};
  };
  ops::set_range(op, 0.3, 2);
  op.errors = ErrorGrowth::large;
  op.repeat = Repeat::costly;
  op.onnx = {"Pow"};
  return op;
}
