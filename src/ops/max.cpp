#include <millrace/onnx_rule.h>

#include "ops/reduce.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(max) {
  const std::vector<DType> dtypes = {f32, f64, bf16, f16, i8, u8, i32, i64};
  Operator op = ops::reduction_operator("max",
                                        "The largest over `axes`; NaN where one is NaN, the dtype's lowest "
                                        "value over nothing. Equal extremes share the "
                                        "gradient.",
                                        Reduction::max, dtypes);
  op.gradient = ops::extreme_gradient;
  op.samples = ops::reduction_samples(dtypes);
  op.onnx = {"ReduceMax"};
  op.onnx_rule = ops::onnx_reduction("ReduceMax", 18);
  return op;
}
