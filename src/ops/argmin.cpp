#include <millrace/onnx_rule.h>

#include "ops/reduce.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(argmin) {
  const std::vector<DType> dtypes = {f32, f64, bf16, f16, i8, u8, i32, i64};
  Operator op = ops::reduction_operator(
      "argmin",
      "The position of the smallest along one axis: the first of equals, and NaN counts as the smallest.",
      Reduction::argmin, dtypes);
  op.differentiable = false;
  op.samples = ops::position_samples(dtypes);
  op.onnx = {"ArgMin"};
  op.onnx_rule = ops::onnx_position("ArgMin");
  return op;
}
