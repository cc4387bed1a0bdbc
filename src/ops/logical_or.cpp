#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(logical_or) {
  Operator op = ops::elementwise_binary("logical_or", "a or b", {boolean});
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.binary(ScalarOp::logical_or, x[0], x[1]);
  };
  op.differentiable = false;
  op.onnx = {"Or"};
  return op;
}
