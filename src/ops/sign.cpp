#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(sign) {
  Operator op = ops::elementwise_unary("sign", "−1, 0 or 1 as x is negative, zero or positive; NaN stays NaN",
                                       {f32, f64, bf16, f16, i8, i16, i32, i64});
  op.scalar = [](ScalarBuilder& b, std::span<const Scalar> x, const Node&) {
    const DType dtype = b.dtype(x[0]);
    const Scalar zero = b.constant(dtype, 0);
    const Scalar rest = b.select(b.less(x[0], zero), b.constant(dtype, -1), x[0]);
    return b.select(b.less(zero, x[0]), b.constant(dtype, 1), rest);
  };
  op.differentiable = false;
  op.onnx = {"Sign"};
  return op;
}
