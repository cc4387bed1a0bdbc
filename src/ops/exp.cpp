#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(exp) {
  Operator op = ops::elementwise_unary("exp", "e to the power x");
  set_scalar(op, ScalarOp::exp);
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    return std::vector<Value>{b.mul(c.result_gradients[0], c.results[0])};
  };
  op.errors = ErrorGrowth::large;
  op.repeat = Repeat::costly;
  op.lowest = 0;
  op.onnx = {"Exp"};
  return op;
}
