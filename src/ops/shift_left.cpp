#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(shift_left) {
  Operator op = ops::elementwise_binary(
      "shift_left", "The bits of a moved left by b places; what a's width or more is moved is 0",
      {i8, u8, i16, u16, i32, u32, i64, u64});
  set_scalar(op, ScalarOp::shift_left);
  op.differentiable = false;
  return op;
}
