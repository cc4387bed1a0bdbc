#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(add) {
  Operator op = ops::elementwise_binary("add", "a + b");
  set_scalar(op, ScalarOp::add);
  op.gradient = [](const GradientContext& c) {
    return std::vector<Value>{c.result_gradients[0], c.result_gradients[0]};
  };
  op.arithmetic = Arithmetic::follows;
  op.onnx = {"Add"};
  return op;
}
