#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(equal) {
  Operator op = ops::comparison("equal", "a = b");
  set_scalar(op, ScalarOp::equal);
  op.errors = ErrorGrowth::decisive;
  op.onnx = {"Equal"};
  return op;
}
