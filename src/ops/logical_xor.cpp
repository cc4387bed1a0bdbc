#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(logical_xor) {
  Operator op = ops::elementwise_binary("logical_xor", "Either a or b", {boolean});
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.binary(ScalarOp::not_equal, x[0], x[1]);
  };
  op.differentiable = false;
  op.onnx = {"Xor"};
  return op;
}
