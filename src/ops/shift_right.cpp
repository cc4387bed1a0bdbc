#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(shift_right) {
  Operator op = ops::elementwise_binary("shift_right",
                                        "The bits of a moved right by b places; of signed integers too the "
                                        "sign is a bit like others; what a's width or more is moved is 0",
                                        {i8, u8, i16, u16, i32, u32, i64, u64});
  set_scalar(op, ScalarOp::shift_right);
  op.differentiable = false;
  return op;
}
