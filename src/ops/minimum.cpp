#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(minimum) {
  Operator op = ops::elementwise_binary(
      "minimum", "The smaller of a and b; NaN where one is NaN. Equal operands share the gradient");
  set_scalar(op, ScalarOp::min);
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const Value g = c.result_gradients[0];
    const Value a = c.operands[0], z = c.operands[1];
    const Value zero = b.zeros(g);
    const Value shared = b.select(b.binary("equal", a, z), b.mul(g, 0.5), zero);
    return std::vector<Value>{b.select(b.binary("less", a, z), g, shared),
                              b.select(b.binary("less", z, a), g, shared)};
  };
  op.arithmetic = Arithmetic::follows;
  op.onnx = {"Min"};
  return op;
}
