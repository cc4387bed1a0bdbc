#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(softsign) {
  Operator op = ops::elementwise_unary("softsign", "x / (1 + |x|)");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.div(x[0], b.add(b.unary(ScalarOp::abs, x[0]), 1));
  };
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const Value size = b.add(b.unary("abs", c.operands[0]), 1);
    return std::vector<Value>{b.div(c.result_gradients[0], b.unary("square", size))};
  };
  op.onnx = {"Softsign"};
  return op;
}
