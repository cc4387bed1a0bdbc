#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(greater_equal) {
  return ops::comparison("greater_equal", "a ≥ b", ScalarOp::greater_equal, "GreaterOrEqual");
}
