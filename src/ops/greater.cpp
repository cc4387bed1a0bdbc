#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(greater) {
  Operator op = ops::comparison("greater", "a > b");
  set_scalar(op, ScalarOp::greater);
  op.onnx = {"Greater"};
  return op;
}
