#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(greater_equal) {
  Operator op = ops::comparison("greater_equal", "a ≥ b");
  set_scalar(op, ScalarOp::greater_equal);
  op.onnx = {"GreaterOrEqual"};
  return op;
}
