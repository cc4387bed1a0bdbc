#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(sub) {
  Operator op = ops::elementwise_binary("sub", "a − b");
  set_scalar(op, ScalarOp::sub);
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const Value g = c.result_gradients[0];
    return std::vector<Value>{g, b.neg(g)};
  };
  op.arithmetic = Arithmetic::follows;
  op.onnx = {"Sub"};
  return op;
}
