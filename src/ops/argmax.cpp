#include <millrace/onnx_rule.h>

#include "ops/reduce.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(argmax) {
  const std::vector<DType> dtypes = {f32, f64, bf16, f16, i8, u8, i32, i64};
  Operator op = ops::reduction_operator(
      "argmax",
      "The position of the largest along one axis: the first of equals, and NaN counts as the largest.",
      Reduction::argmax, dtypes);
  op.differentiable = false;
  op.samples = ops::position_samples(dtypes);
  op.onnx = {"ArgMax"};
  op.onnx_rule = ops::onnx_position("ArgMax");
  return op;
}
