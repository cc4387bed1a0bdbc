#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(less_equal) {
  Operator op = ops::comparison("less_equal", "a ≤ b");
  set_scalar(op, ScalarOp::less_equal);
  op.onnx = {"LessOrEqual"};
  return op;
}
