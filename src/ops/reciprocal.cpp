#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(reciprocal) {
  Operator op = ops::elementwise_unary("reciprocal", "1 / x");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.div(b.constant(b.dtype(x[0]), 1), x[0]);
  };
  op.gradient = ops::unary_gradient(
      [](ops::Build& b, Value g, Value, Value y) { return b.neg(b.mul(g, b.unary("square", y))); });
  ops::set_range(op, 0.3, 3);
  op.errors = ErrorGrowth::large;
  op.onnx = {"Reciprocal"};
  return op;
}
