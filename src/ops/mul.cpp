#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(mul) {
  Operator op = ops::elementwise_binary("mul", "a · b");
  set_scalar(op, ScalarOp::mul);
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const Value g = c.result_gradients[0];
    return std::vector<Value>{b.mul(g, c.operands[1]), b.mul(g, c.operands[0])};
  };
  op.arithmetic = Arithmetic::follows;
  op.onnx = {"Mul"};
  return op;
}
