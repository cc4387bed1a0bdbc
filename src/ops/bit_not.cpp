#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(bit_not) {
  Operator op = ops::elementwise_unary("bit_not", "The bits that an integer has not",
                                       {i8, u8, i16, u16, i32, u32, i64, u64});
  set_scalar(op, ScalarOp::bit_not);
  op.differentiable = false;
  op.onnx = {"BitwiseNot"};
  op.onnx_opset = 18;
  return op;
}
