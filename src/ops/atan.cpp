#include <initializer_list>

#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

Scalar polynomial(ScalarBuilder& b, Scalar x, std::initializer_list<double> coefficients) {
  Scalar sum = b.constant(b.dtype(x), *coefficients.begin());
  for (const double* c = coefficients.begin() + 1; c != coefficients.end(); ++c)
    sum = b.add(b.mul(sum, x), *c);
  return sum;
}

/// Of |x|, by Cephes (S. Moshier): around 0, 1 (tan π/8 … tan 3π/8) and ∞ as an odd polynomial or a rational
/// function.
Scalar arc_tangent(ScalarBuilder& b, Scalar size, bool wide) {
  constexpr double half_pi = 1.57079632679489661923, quarter_pi = 0.78539816339744830962;
  const DType dtype = b.dtype(size);
  const auto c = [&](double value) { return b.constant(dtype, value); };
  const Scalar far = b.less(c(2.414213562373095), size),
               middle = b.less(c(wide ? 0.66 : 0.4142135623730950), size);
  const Scalar over = b.div(c(-1), b.max(size, c(1)));
  const Scalar around = b.div(b.sub(size, 1), b.add(size, 1));
  // ∞ / ∞ is not wanted where it is not taken either.
  const Scalar x = b.select(far, over, b.select(middle, around, size));
  const Scalar from = b.select(far, c(half_pi), b.select(middle, c(quarter_pi), c(0)));
  const Scalar z = b.mul(x, x);
  if (!wide) {
    const Scalar p =
        polynomial(b, z, {8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1});
    return b.add(from, b.add(b.mul(b.mul(p, z), x), x));
  }
  const Scalar p =
      polynomial(b, z,
                 {-8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1,
                  -1.228866684490136173410e2, -6.485021904942025371773e1});
  const Scalar q =
      polynomial(b, z,
                 {1, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2,
                  4.853903996359136964868e2, 1.945506571482613964425e2});
  return b.add(from, b.add(b.mul(x, b.mul(z, b.div(p, q))), x));
}

}  // namespace

MILLRACE_OPERATOR(atan) {
  Operator op = ops::elementwise_unary("atan", "The arc tangent");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    const DType dtype = b.dtype(x[0]);
    const Scalar zero = b.constant(dtype, 0);
    const Scalar angle = arc_tangent(b, b.unary(ScalarOp::abs, x[0]), dtype == f64);
    return b.select(b.less(x[0], zero), b.neg(angle), b.select(b.equal(x[0], zero), x[0], angle));
  };
  op.gradient = ops::unary_gradient(
      [](ops::Build& b, Value g, Value x, Value) { return b.div(g, b.add(b.unary("square", x), 1)); });
  op.arithmetic = Arithmetic::follows;
  op.repeat = Repeat::costly;
  op.onnx = {"Atan"};
  return op;
}
