#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(log1p) {
  Operator op = ops::elementwise_unary("log1p", "log(1 + x), exact for small x");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    // Kahan: the rounding error of u = 1 + x is the same in log(u) and u − 1, and cancels in their quotient.
    const Scalar u = b.add(x[0], 1), d = b.sub(u, 1), logarithm = b.unary(ScalarOp::log, u);
    const Scalar value = b.mul(logarithm, b.div(x[0], d));
    const Scalar small = b.select(b.equal(d, b.constant(b.dtype(d), 0)), x[0], value);
    return b.select(b.equal(u, x[0]), logarithm, small);
  };
  op.gradient =
      ops::unary_gradient([](ops::Build& b, Value g, Value x, Value) { return b.div(g, b.add(x, 1)); });
  ops::set_range(op, -0.9, 2);
  op.samples.push_back({.operands = {{f32, {65}}}, .low = -1e-6, .high = 1e-6});
  op.errors = ErrorGrowth::large;
  op.repeat = Repeat::costly;
  return op;
}
