#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(maximum) {
  return ops::extreme_of_two("maximum",
                             "The larger of a and b; NaN where one is NaN. Equal operands share the gradient",
                             ScalarOp::max, "greater", "Max");
}
