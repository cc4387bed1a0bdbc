#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(expm1) {
  Operator op = ops::elementwise_unary("expm1", "exp(x) − 1, exact for small x");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    // Kahan: as in log1p, the rounding error of u = exp(x) cancels in (u − 1) / log(u).
    const DType dtype = b.dtype(x[0]);
    const Scalar one = b.constant(dtype, 1), minus_one = b.constant(dtype, -1);
    const Scalar u = b.exp(x[0]), d = b.sub(u, one);
    Scalar value = b.mul(d, b.div(x[0], b.unary(ScalarOp::log, u)));
    value = b.select(b.equal(d, minus_one), minus_one, value);
    value = b.select(b.equal(u, one), x[0], value);
    return b.select(b.equal(u, d), u, value);
  };
  op.gradient =
      ops::unary_gradient([](ops::Build& b, Value g, Value, Value y) { return b.mul(g, b.add(y, 1)); });
  op.samples.push_back({.operands = {{f32, {65}}}, .low = -1e-6, .high = 1e-6});
  op.samples.push_back({.operands = {{f32, {33}}}, .low = -40, .high = 40, .check_gradient = false});
  op.errors = ErrorGrowth::large;
  op.repeat = Repeat::costly;
  return op;
}
