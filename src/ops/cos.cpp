#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(cos) {
  Operator op = ops::elementwise_unary("cos", "The cosine; x in radians");
  set_scalar(op, ScalarOp::cos);
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    return std::vector<Value>{b.neg(b.mul(c.result_gradients[0], b.unary("sin", c.operands[0])))};
  };
  ops::set_range(op, -7, 7);
  op.errors = ErrorGrowth::large;
  op.repeat = Repeat::costly;
  op.onnx = {"Cos"};
  return op;
}
