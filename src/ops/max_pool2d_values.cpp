#include <limits>

#include <millrace/onnx_rule.h>

#include "ops/pooling.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(max_pool2d_values) {
  Operator op = ops::pooling_operator(
      "max_pool2d_values",
      "The first result of max_pool2d: the maximum of every window, NaN when it contains one.");
  op.disjoint = ops::windows_disjoint;
  op.types = ops::pooled_types;
  op.element = [](ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
    const ops::Pooling p = ops::pooling(c.operands[0].shape, c.node.attributes);
    const Scalar lowest = b.constant(c.operands[0].dtype, -std::numeric_limits<double>::infinity());
    Scalar best = lowest;
    ops::for_window(b, p, index, [&](Scalar inside, Scalar row, Scalar column) {
      const Scalar at[] = {index[0], index[1], row, column};
      best = b.max(best, b.load_if(inside, 0, at, lowest));
    });
    return best;
  };
  op.gradient = [](const GradientContext& c) { return std::vector<Value>{ops::max_pool2d_gradient(c)}; };
  op.onnx = {"MaxPool"};
  op.onnx_rule = ops::onnx_max_pool;
  for (const ops::PoolingSample& s : ops::pooling_samples())
    op.samples.push_back({.operands = {{s.dtype, s.x}}, .attributes = s.attributes});
  return op;
}
