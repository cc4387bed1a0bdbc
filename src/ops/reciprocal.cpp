#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(reciprocal) {
  Operator op = ops::elementwise_unary("reciprocal", "1 / x");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.div(b.constant(b.dtype(x[0]), 1), x[0]);
  };
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const Value y = c.results[0];
    return std::vector<Value>{b.neg(b.mul(c.result_gradients[0], b.unary("square", y)))};
  };
  ops::set_range(op, 0.3, 3);
  op.errors = ErrorGrowth::large;
  op.onnx = {"Reciprocal"};
  return op;
}
