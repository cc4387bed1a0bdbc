#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(bit_and) {
  Operator op = ops::elementwise_binary("bit_and", "The bits that both integers have",
                                        {i8, u8, i16, u16, i32, u32, i64, u64});
  set_scalar(op, ScalarOp::bit_and);
  op.differentiable = false;
  op.onnx = {"BitwiseAnd"};
  op.onnx_opset = 18;
  return op;
}
