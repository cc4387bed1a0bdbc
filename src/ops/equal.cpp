#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(equal) {
  Operator op = ops::comparison("equal", "a = b", ScalarOp::equal, "Equal");
  op.errors = ErrorGrowth::decisive;
  return op;
}
