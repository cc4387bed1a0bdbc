#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(greater) {
  Operator op = ops::comparison("greater", "a > b");
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    return b.binary(ScalarOp::greater, x[0], x[1]);
  };
  op.onnx = {"Greater"};
  return op;
}
