#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(equal) {
  Operator op = ops::comparison("equal", "a = b");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.binary(ScalarOp::equal, x[0], x[1]);
  };
  op.onnx = {"Equal"};
  return op;
}
