#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(log) {
  Operator op = ops::elementwise_unary("log", "The natural logarithm");
  set_scalar(op, ScalarOp::log);
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    return std::vector<Value>{b.div(c.result_gradients[0], c.operands[0])};
  };
  ops::set_range(op, 0.1, 4);
  op.errors = ErrorGrowth::large;
  op.repeat = Repeat::costly;
  op.onnx = {"Log"};
  return op;
}
