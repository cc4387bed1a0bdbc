#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(minimum) {
  return ops::extreme_of_two(
      "minimum", "The smaller of a and b; NaN where one is NaN. Equal operands share the gradient",
      ScalarOp::min, "less", "Min");
}
