#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(less_equal) {
  return ops::comparison("less_equal", "a ≤ b", ScalarOp::less_equal, "LessOrEqual");
}
