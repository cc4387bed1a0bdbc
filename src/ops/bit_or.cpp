#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(bit_or) {
  Operator op = ops::elementwise_binary("bit_or", "The bits that either integer has",
                                        {i8, u8, i16, u16, i32, u32, i64, u64});
  set_scalar(op, ScalarOp::bit_or);
  op.differentiable = false;
  op.onnx = {"BitwiseOr"};
  op.onnx_opset = 18;
  return op;
}
