#include <millrace/onnx_rule.h>

#include "ops/pooling.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(max_pool2d) {
  Operator op;
  op.name = "max_pool2d";
  op.op_class = OpClass::composite;
  op.doc =
      "Results: the maximum of every window, and the i64 position row * width + column of its first "
      "occurrence in the "
      "image. Padding never wins; the first NaN does.";
  op.attributes = ops::pooling_attributes();
  op.types = [](const TypeContext& c) {
    const Shape shape = ops::pooling_result(c.operands[0].shape, c);
    return std::vector<Type>{{c.operands[0].dtype, shape}, {i64, shape}};
  };
  op.body = [](Graph& graph, std::span<const Value> x, const Attributes& attributes) {
    return std::vector<Value>{graph.add("max_pool2d_values", {x[0]}, attributes),
                              graph.add("max_pool2d_positions", {x[0]}, attributes)};
  };
  op.gradient = [](const GradientContext& c) {
    if (!c.result_gradients[0].valid()) return std::vector<Value>{{}};
    // Positions of its own: the i64 ones, if nothing else reads them, are never computed.
    return std::vector<Value>{ops::max_pool2d_gradient(c)};
  };
  op.onnx = {"MaxPool"};
  op.onnx_rule = ops::onnx_max_pool;  // positions count otherwise there: only the values
  for (const ops::PoolingSample& s : ops::pooling_samples())
    op.samples.push_back({.operands = {{s.dtype, s.x}}, .attributes = s.attributes});
  return op;
}
