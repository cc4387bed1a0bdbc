#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(maximum) {
  Operator op = ops::elementwise_binary(
      "maximum", "The larger of a and b; NaN where one is NaN. Equal operands share the gradient");
  set_scalar(op, ScalarOp::max);
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const Value g = c.result_gradients[0];
    const Value a = c.operands[0], z = c.operands[1];
    const Value zero = b.zeros(g);
    const Value shared = b.select(b.binary("equal", a, z), b.mul(g, 0.5), zero);
    return std::vector<Value>{b.select(b.binary("greater", a, z), g, shared),
                              b.select(b.binary("greater", z, a), g, shared)};
  };
  op.arithmetic = Arithmetic::follows;
  op.onnx = {"Max"};
  return op;
}
