#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(greater_equal) {
  Operator op = ops::comparison("greater_equal", "a ≥ b");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.binary(ScalarOp::greater_equal, x[0], x[1]);
  };
  op.onnx = {"GreaterOrEqual"};
  return op;
}
