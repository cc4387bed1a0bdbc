#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(shift_right) {
  return ops::bitwise("shift_right",
                      "The bits of a moved right by b places; of signed integers too the sign is a bit like "
                      "others; what a's width or more is moved is 0",
                      ScalarOp::shift_right);
}
