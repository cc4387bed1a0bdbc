#include <millrace/onnx_rule.h>

#include "ops/reduce.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(min) {
  const std::vector<DType> dtypes = {f32, f64, bf16, f16, i8, u8, i32, i64};
  Operator op = ops::reduction_operator("min",
                                        "The smallest over `axes`; NaN where one is NaN, the dtype's highest "
                                        "value over nothing. Equal extremes share the "
                                        "gradient.",
                                        Reduction::min, dtypes);
  op.gradient = ops::extreme_gradient;
  op.samples = ops::reduction_samples(dtypes);
  op.onnx = {"ReduceMin"};
  op.onnx_rule = ops::onnx_reduction("ReduceMin", 18);
  return op;
}
