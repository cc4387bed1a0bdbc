#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(bit_and) {
  return ops::bitwise("bit_and", "The bits that both integers have", ScalarOp::bit_and, "BitwiseAnd");
}
