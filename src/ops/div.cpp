#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(div) {
  Operator op = ops::elementwise_binary("div", "a / b; of integers truncated toward zero, and x/0 is 0");
  set_scalar(op, ScalarOp::div);
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const Value g = c.result_gradients[0];
    const Value part = b.div(g, c.operands[1]);
    return std::vector<Value>{part, b.neg(b.mul(part, c.results[0]))};
  };
  ops::set_range(op, 0.5, 2);
  op.errors = ErrorGrowth::large;
  op.repeat = Repeat::costly;
  op.onnx = {"Div"};
  return op;
}
