#include <millrace/onnx_rule.h>

#include "ops/pooling.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(avg_pool2d) {
  Operator op = ops::pooling_operator(
      "avg_pool2d", "The mean of every window of images [batch, channels, height, width].",
      {{"count_include_pad", Attribute(true),
        "padding counts as zeros; else the mean is over image elements only"}});
  op.disjoint = ops::windows_disjoint;
  op.types = ops::pooled_types;
  op.element = [](ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
    const ops::Pooling p = ops::pooling(c.operands[0].shape, c.node.attributes);
    const DType dtype = c.operands[0].dtype;
    const Scalar zero = b.constant(dtype, 0);
    Scalar sum = zero;
    ops::for_window(b, p, index, [&](Scalar inside, Scalar row, Scalar column) {
      const Scalar at[] = {index[0], index[1], row, column};
      sum = b.add(sum, b.load_if(inside, 0, at, zero));
    });
    return ops::divide_by_window(b, p, sum, index[2], index[3], c.node.attributes);
  };
  op.gradient = [](const GradientContext& c) {
    return std::vector<Value>{c.graph.add("avg_pool2d_grad", {c.result_gradients[0]},
                                          ops::pooling_attributes_of(c.node, &c.type(c.operands[0]).shape))};
  };
  op.onnx = {"AveragePool"};
  op.onnx_rule = [](const OnnxCall& c) {
    return c.one("AveragePool", c.operands,
                 {{"kernel_shape", c.attributes().ints("kernel")},
                  {"strides", c.attributes().ints("strides")},
                  {"pads", c.attributes().ints("pads")},
                  {"count_include_pad", int64_t{c.attributes().flag("count_include_pad")}}});
  };
  for (const ops::PoolingSample& s : ops::pooling_samples()) {
    op.samples.push_back({.operands = {{s.dtype, s.x}}, .attributes = s.attributes});
    op.samples.push_back(op.samples.back());
    op.samples.back().attributes.set("count_include_pad", false);
  }
  return op;
}
