#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(sqrt) {
  Operator op = ops::elementwise_unary("sqrt", "The square root");
  set_scalar(op, ScalarOp::sqrt);
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    return std::vector<Value>{b.div(b.mul(c.result_gradients[0], 0.5), c.results[0])};
  };
  ops::set_range(op, 0.1, 4);
  op.errors = ErrorGrowth::large;
  op.repeat = Repeat::costly;
  op.lowest = 0;
  op.onnx = {"Sqrt"};
  return op;
}
