#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(less) {
  Operator op = ops::comparison("less", "a < b");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.binary(ScalarOp::less, x[0], x[1]);
  };
  op.onnx = {"Less"};
  return op;
}
