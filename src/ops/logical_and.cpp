#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(logical_and) {
  Operator op = ops::elementwise_binary("logical_and", "a and b", {boolean});
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) { return b.both(x[0], x[1]); };
  op.differentiable = false;
  op.onnx = {"And"};
  return op;
}
