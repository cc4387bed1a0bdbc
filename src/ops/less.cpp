#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(less) {
  Operator op = ops::comparison("less", "a < b");
  set_scalar(op, ScalarOp::less);
  op.onnx = {"Less"};
  return op;
}
