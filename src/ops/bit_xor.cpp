#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(bit_xor) {
  return ops::bitwise("bit_xor", "The bits that one integer has and the other has not", ScalarOp::bit_xor,
                      "BitwiseXor");
}
