#include "ops/build.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(log) {
  Operator op = ops::elementwise_unary("log", "The natural logarithm");
  set_scalar(op, ScalarOp::log);
  op.gradient = ops::unary_gradient([](ops::Build& b, Value g, Value x, Value) { return b.div(g, x); });
  ops::set_range(op, 0.1, 4);
  op.errors = ErrorGrowth::large;
  op.repeat = Repeat::costly;
  op.onnx = {"Log"};
  return op;
}
