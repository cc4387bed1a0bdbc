#include <algorithm>

#include <millrace/onnx_rule.h>

#include "ops/build.h"
#include "ops/reduce.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(mean) {
  Operator op = ops::reduction_operator("mean", "The mean over `axes`; NaN over nothing.", Reduction::mean,
                                        {f32, f64, bf16, f16});
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const Shape& shape = c.type(c.operands[0]).shape;
    const Shape kept = ops::kept_shape(shape, c.node.attributes.ints("axes"));
    const Value g = b.reshape(c.result_gradients[0], kept);
    const double count =
        static_cast<double>(shape.count()) / static_cast<double>(std::max<int64_t>(kept.count(), 1));
    return std::vector<Value>{b.broadcast(b.mul(g, 1 / std::max(count, 1.0)), shape)};
  };
  op.samples = ops::reduction_samples({f32, f64, bf16, f16});
  op.onnx = {"ReduceMean"};
  op.onnx_rule = ops::onnx_reduction("ReduceMean", 18);
  return op;
}
