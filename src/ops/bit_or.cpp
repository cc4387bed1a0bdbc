#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(bit_or) {
  return ops::bitwise("bit_or", "The bits that either integer has", ScalarOp::bit_or, "BitwiseOr");
}
