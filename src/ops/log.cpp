#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(log) {
  Operator op = ops::elementwise_unary("log", "The natural logarithm");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.unary(ScalarOp::log, x[0]);
  };
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    return std::vector<Value>{b.div(c.result_gradients[0], c.operands[0])};
  };
  ops::set_range(op, 0.1, 4);
  op.onnx = {"Log"};
  return op;
}
