#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(less_equal) {
  Operator op = ops::comparison("less_equal", "a ≤ b");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.binary(ScalarOp::less_equal, x[0], x[1]);
  };
  op.onnx = {"LessOrEqual"};
  return op;
}
