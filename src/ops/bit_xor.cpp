#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(bit_xor) {
  Operator op = ops::elementwise_binary("bit_xor", "The bits that one integer has and the other has not",
                                        {i8, u8, i16, u16, i32, u32, i64, u64});
  set_scalar(op, ScalarOp::bit_xor);
  op.differentiable = false;
  op.onnx = {"BitwiseXor"};
  op.onnx_opset = 18;
  return op;
}
