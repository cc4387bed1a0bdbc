#include <millrace/onnx_rule.h>

#include "ops/build.h"
#include "ops/reduce.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(sum) {
  Operator op = ops::reduction_operator("sum", "The sum over `axes`.", Reduction::sum,
                                        {f32, f64, bf16, f16, i32, u32, i64, u64});
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const Shape& shape = c.type(c.operands[0]).shape;
    const Value g = b.reshape(c.result_gradients[0], ops::kept_shape(shape, c.node.attributes.ints("axes")));
    return std::vector<Value>{b.broadcast(g, shape)};
  };
  op.onnx = {"ReduceSum"};
  op.onnx_rule = ops::onnx_reduction("ReduceSum", 13);
  op.samples = ops::reduction_samples({f32, f64, bf16, f16, i32, u32, i64, u64});
  return op;
}
