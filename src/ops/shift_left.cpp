#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(shift_left) {
  return ops::bitwise("shift_left",
                      "The bits of a moved left by b places; what a's width or more is moved is 0",
                      ScalarOp::shift_left);
}
