#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(softsign) {
  Operator op = ops::elementwise_unary("softsign", "x / (1 + |x|)");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.div(x[0], b.add(b.unary(ScalarOp::abs, x[0]), 1));
  };
  op.gradient = ops::unary_gradient([](ops::Build& b, Value g, Value x, Value) {
    const Value size = b.add(b.unary("abs", x), 1);
    return b.div(g, b.unary("square", size));
  });
  op.onnx = {"Softsign"};
  return op;
}
