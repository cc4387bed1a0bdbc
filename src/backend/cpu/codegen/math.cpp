// Elementary functions as expressions.
#include <limits>

#include "backend/cpu/codegen/dag.h"
#include "base/format.h"

namespace millrace::codegen {
namespace {

/// f32 arithmetic on expressions, short to write.
struct DagBuilder {
  Dag& dag;

  int f(double value) { return dag.constant(f32, value); }
  int i(int64_t value) { return dag.integer(i32, value); }
  int add(int a, int b) { return dag.binary(ScalarOp::add, a, b); }
  int sub(int a, int b) { return dag.binary(ScalarOp::sub, a, b); }
  int mul(int a, int b) { return dag.binary(ScalarOp::mul, a, b); }
  int fma(int a, int b, int c) { return dag.fma(a, b, c); }
  int less(int a, int b) { return dag.binary(ScalarOp::less, a, b); }
  int select(int c, int a, int b) { return dag.select(c, a, b); }
  int bits(int a) { return dag.bitcast(a, f32, i32); }
  int value(int a) { return dag.bitcast(a, i32, f32); }
  int shift_left(int a, int64_t n) { return dag.binary(ScalarOp::shift_left, a, i(n)); }
  int shift_right(int a, int64_t n) { return dag.binary(ScalarOp::shift_right, a, i(n)); }
  int and_(int a, int64_t mask) { return dag.binary(ScalarOp::bit_and, a, i(mask)); }
  /// Coefficients from the highest power down.
  int polynomial(int x, std::initializer_list<double> coefficients) {
    int sum = -1;
    for (const double c : coefficients) sum = sum < 0 ? f(c) : fma(sum, x, f(c));
    return sum;
  }
  /// The size of a with the sign of s.
  int copysign(int a, int s) {
    return value(dag.binary(ScalarOp::bit_or, bits(a), and_(bits(s), INT32_MIN)));
  }
};

/// e^x = fraction × 2^k, and k + kRoundingShift.
struct Power {
  int fraction, shifted;
};

/// x = k ln 2 + r (Cephes expf, S. Moshier); the fraction is within 3e-9 of e^r: 1 + r + r² p(r), of which p
/// is the minimax polynomial for |r| < 0.3468.
Power power_of_e(DagBuilder& b, int x) {
  const int shifted = b.fma(x, b.f(1.44269504088896341), b.f(kRoundingShift));
  const int k = b.sub(shifted, b.f(kRoundingShift));
  int r = b.fma(k, b.f(-0.693359375), x);
  r = b.fma(k, b.f(2.12194440e-4), r);
  const int e = b.polynomial(
      r, {1.3814517461e-3, 8.3687559475e-3, 4.1668391840e-2, 1.6666520310e-1, 4.9999993426e-1, 1, 1});
  return {e, shifted};
}

/// A NaN stays.
int at_least(DagBuilder& b, int x, double low) { return b.select(b.less(x, b.f(low)), b.f(low), x); }
int at_most(DagBuilder& b, int x, double high) { return b.select(b.less(b.f(high), x), b.f(high), x); }

int exp_f32(DagBuilder& b, int x) {
  const Power power = power_of_e(b, at_most(b, at_least(b, x, -104), 89));
  return b.dag.scale(power.fraction, power.shifted);
}

/// 1 / (1 + e^−x). 2^k is written as a float's exponent, which is ∞ for k = 128: what would be below the
/// normal numbers then is 0.
int sigmoid_f32(DagBuilder& b, int x) {
  const Power power = power_of_e(b, b.dag.unary(ScalarOp::neg, at_most(b, at_least(b, x, -89), 87)));
  const int two_to_k = b.value(b.add(b.shift_left(b.bits(power.shifted), 23), b.i(0x3F800000)));
  return b.dag.binary(ScalarOp::div, b.f(1), b.fma(power.fraction, two_to_k, b.f(1)));
}

int sigmoid_f64(Dag& dag, int x) {
  const int one = dag.constant(f64, 1), e = dag.call("exp", {dag.unary(ScalarOp::neg, x)});
  return dag.binary(ScalarOp::div, one, dag.binary(ScalarOp::add, one, e));
}

/// Cephes logf (S. Moshier), mantissa in [√½, √2).
int log_f32(DagBuilder& b, int x) {
  const int tiny = b.less(x, b.f(0x1p-126));
  const int normal = b.select(tiny, b.mul(x, b.f(0x1p23)), x);
  const int from_root = b.sub(b.bits(normal), b.i(0x3F3504F3));
  const int exponent = b.sub(b.shift_right(b.add(from_root, b.i(0x40000000)), 23), b.i(128));
  const int mantissa = b.value(b.sub(b.bits(normal), b.shift_left(exponent, 23)));
  const int e = b.sub(b.dag.cast(exponent, f32), b.select(tiny, b.f(23), b.f(0)));
  const int m = b.sub(mantissa, b.f(1)), z = b.mul(m, m);
  const int p =
      b.polynomial(m, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
                       -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
  int y = b.mul(b.mul(p, m), z);
  y = b.fma(e, b.f(-2.12194440e-4), y);
  y = b.fma(z, b.f(-0.5), y);
  const int regular = b.fma(e, b.f(0.693359375), b.add(m, y));
  const double inf = std::numeric_limits<double>::infinity();
  // 0 gives −∞; negative numbers and NaN give NaN; ∞ stays.
  const int low = b.select(b.dag.binary(ScalarOp::equal, x, b.f(0)), b.f(-inf),
                           b.f(std::numeric_limits<double>::quiet_NaN()));
  return b.select(b.less(b.f(0), x), b.select(b.dag.binary(ScalarOp::equal, x, b.f(inf)), b.f(inf), regular),
                  low);
}

/// 1 − 2 / (e^2|x| + 1), which is 1 from 9.02 on, and an odd polynomial near 0 (Cephes tanhf).
int tanh_f32(DagBuilder& b, int x) {
  const int size = b.dag.unary(ScalarOp::abs, x), bounded = at_most(b, size, 10);
  const Power power = power_of_e(b, b.add(bounded, bounded));
  // k is from 0 to 29: it is added to the exponent.
  const int e = b.value(b.add(b.bits(power.fraction), b.shift_left(b.bits(power.shifted), 23)));
  const int far = b.sub(b.f(1), b.dag.binary(ScalarOp::div, b.f(2), b.add(e, b.f(1))));
  const int z = b.mul(x, x);
  const int p = b.polynomial(
      z, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1});
  const int near = b.fma(b.mul(p, z), size, size);
  return b.copysign(b.select(b.less(b.f(0.625), size), far, near), x);
}

/// x · p(x²) for |x| < 3.92, where p is a Chebyshev fit of erf(x)/x in x² mapped to [−1, 1] (Horner's scheme
/// is well conditioned there), within 4 ulp; beyond, erf is ±1 in f32. Half the operations of a form with an
/// exponential.
int erf_f32(DagBuilder& b, int x) {
  constexpr double limit = 3.92;
  const int u = b.fma(b.mul(x, x), b.f(2 / (limit * limit)), b.f(-1));
  const int p =
      b.polynomial(u, {3.153579757e-04, -9.001547496e-04, 8.469024577e-04, -1.182221656e-03, 3.933625274e-03,
                       -7.979693520e-03, 1.252845782e-02, -1.975205433e-02, 3.047261623e-02, -4.353526038e-02,
                       5.820284214e-02, -7.399952867e-02, 9.062048685e-02, -1.091810509e-01, 1.340834714e-01,
                       -1.801085813e-01, 3.607368195e-01});
  const int beyond = b.less(b.f(limit), b.dag.unary(ScalarOp::abs, x));
  return b.select(beyond, b.copysign(b.f(1), x), b.mul(p, x));
}

}  // namespace

int elementary(Dag& dag, ScalarOp op, int x) {
  DagBuilder b{dag};
  const bool single = dag[x].dtype == f32;
  switch (op) {
    case ScalarOp::exp:
      return single ? exp_f32(b, x) : dag.call("exp", {x});
    case ScalarOp::log:
      return single ? log_f32(b, x) : dag.call("log", {x});
    case ScalarOp::tanh:
      return single ? tanh_f32(b, x) : dag.call("tanh", {x});
    case ScalarOp::erf:
      return single ? erf_f32(b, x) : dag.call("erf", {x});
    case ScalarOp::sigmoid:
      return single ? sigmoid_f32(b, x) : sigmoid_f64(dag, x);
    case ScalarOp::sin:
      return dag.call(single ? "sinf" : "sin", {x});
    case ScalarOp::cos:
      return dag.call(single ? "cosf" : "cos", {x});
    default:
      fail<InternalError>("no elementary function {}", static_cast<int>(op));
  }
}

int elementary_binary(Dag& dag, ScalarOp op, int x, int y) {
  const bool single = dag[x].dtype == f32;
  if (op == ScalarOp::rem) return dag.call(single ? "fmodf" : "fmod", {x, y});
  return dag.call(single ? "powf" : "pow", {x, y});
}

}  // namespace millrace::codegen
