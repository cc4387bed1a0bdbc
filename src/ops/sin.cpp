#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(sin) {
  Operator op = ops::elementwise_unary("sin", "The sine; x in radians");
  set_scalar(op, ScalarOp::sin);
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    return std::vector<Value>{b.mul(c.result_gradients[0], b.unary("cos", c.operands[0]))};
  };
  ops::set_range(op, -7, 7);
  op.errors = ErrorGrowth::large;
  op.repeat = Repeat::costly;
  op.onnx = {"Sin"};
  return op;
}
