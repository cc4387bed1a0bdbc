#include <millrace/onnx_rule.h>

#include "ops/axis.h"
#include "ops/build.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(log_softmax) {
  Operator op;
  op.name = "log_softmax";
  op.op_class = OpClass::composite;
  op.doc =
      "The logarithm of softmax along `axis`, exact where softmax underflows; 16-bit floats are summed in "
      "f32.";
  op.attributes = {{"axis", Attribute(int64_t{-1}), "negative counts from the end"}};
  op.types = ops::float_type_with_axis;
  op.body = [](Graph& graph, std::span<const Value> operands, const Attributes& attributes) {
    ops::Build b(graph);
    const std::vector<int64_t> axis = {attributes.integer("axis")};
    const Value x = b.widen(operands[0]);
    const Value z = b.sub(x, b.max(x, axis, true));
    const Value normaliser = b.unary("log", b.sum(b.unary("exp", z), axis, true));
    return std::vector<Value>{b.cast(b.sub(z, normaliser), b.dtype(operands[0]))};
  };
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const Value y = b.widen(c.results[0]), g = b.widen(c.result_gradients[0]);
    const Value sum = b.sum(g, {c.node.attributes.integer("axis")}, true);
    return std::vector<Value>{b.cast(b.sub(g, b.mul(b.unary("exp", y), sum)), c.type(c.operands[0]).dtype)};
  };
  op.highest = 0;
  op.logits = Logits::row;
  op.onnx = {"LogSoftmax"};
  op.onnx_rule = [](const OnnxCall& c) {
    return c.one("LogSoftmax", c.operands, {{"axis", c.attributes().integer("axis")}});
  };
  op.samples = ops::axis_samples();
  op.samples.push_back(
      {.operands = {{f32, {3, 4}}}, .low = 80, .high = 4000, .check_gradient = false, .note = "large"});
  return op;
}
