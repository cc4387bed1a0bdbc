#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(add) {
  Operator op = ops::elementwise_binary("add", "a + b");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) { return b.add(x[0], x[1]); };
  op.gradient = [](const GradientContext& c) {
    return std::vector<Value>{c.result_gradients[0], c.result_gradients[0]};
  };
  op.onnx = {"Add"};
  return op;
}
