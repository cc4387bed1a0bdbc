#include "ops/fused_conv2d.h"

#include <cmath>

#include "base/format.h"
#include "ops/build.h"
#include "ops/convolution.h"
#include "ops/filled.h"
#include "ops/registry.h"

using namespace millrace;

namespace millrace::ops {
std::optional<Limited> limited(const Graph& graph, Value value) {
  const Node& node = graph.node(value);
  if (node.op->name == "clamp")
    return Limited{node.operands[0], node.attributes.number("low"), node.attributes.number("high"), 1};
  if (!node.op->chooses || number_of(graph, node.operands[1]) != 0) return std::nullopt;
  const Node& condition = graph.node(node.operands[0]);
  if (!condition.op->is(ScalarOp::less_equal) || condition.operands[0] != node.operands[2] ||
      number_of(graph, condition.operands[1]) != 0)
    return std::nullopt;
  return Limited{node.operands[2], 0, INFINITY, 2};
}

}  // namespace millrace::ops

namespace {

std::vector<Type> fused_types(const TypeContext& c) {
  const Type &x = c.operands[0], &w = c.operands[1], &bias = c.operands.back();
  if (x.dtype != w.dtype || !x.dtype.is_float()) c.error("input and weights must have the same float dtype");
  const Type result{x.dtype, ops::convolution_result(x.shape, w.shape, c)};
  if (c.operands.size() == 4 && c.operands[2] != result)
    c.error(fmt::format("what is added must be like the result, {}", result.str()));
  if (bias.dtype != ops::wide(x.dtype) || bias.shape != Shape{w.shape[0]})
    c.error(fmt::format("the bias must be {}", Type{ops::wide(x.dtype), {w.shape[0]}}.str()));
  if (!(c.attributes.number("low") <= c.attributes.number("high"))) c.error("low must not exceed high");
  return {result};
}

std::vector<Value> fused_body(Graph& graph, std::span<const Value> x, const Attributes& attributes) {
  ops::Build b(graph);
  Attributes own;
  for (const AttributeSpec& spec : ops::convolution_attributes())
    own.set(std::string(spec.name), *attributes.find(spec.name));
  const DType dtype = b.dtype(x[0]);
  Value y = graph.add("conv2d", {b.widen(x[0]), b.widen(x[1])}, own);
  y = b.add(y, b.reshape(x.back(), {1, b.shape(x[1])[0], 1, 1}));
  if (x.size() == 4) y = b.add(y, b.widen(x[2]));
  const double low = attributes.number("low"), high = attributes.number("high");
  if (std::isfinite(low) || std::isfinite(high)) y = graph.add("clamp", {y}, {{"low", low}, {"high", high}});
  return {b.cast(y, dtype)};
}

}  // namespace

MILLRACE_OPERATOR(fused_conv2d) {
  Operator op;
  op.name = "fused_conv2d";
  op.op_class = OpClass::composite;
  op.doc =
      "conv2d(x, w) + residual + bias, limited to [low, high], rounded once: operands x, w, maybe a residual "
      "like the result, and a bias per output channel (f32 where x is narrower).";
  op.min_operands = 3;
  op.max_operands = 4;
  op.attributes = ops::convolution_attributes();
  op.attributes.push_back({"low", Attribute(-INFINITY), "the least result"});
  op.attributes.push_back({"high", Attribute(INFINITY), "the greatest"});
  op.types = fused_types;
  op.body = fused_body;
  op.narrow_operands = -1;
  op.flops = [](const Graph& graph, const Node& node) {
    return ops::convolution_flops(graph.type(node.operands[0]).shape, graph.type(node.operands[1]).shape,
                                  node.attributes);
  };
  op.tolerance = {.f32 = 1e-4, .f64 = 1e-11, .half = 3e-2};
  int i = 0;
  for (const ops::ConvolutionSample& s : ops::convolution_samples()) {
    Sample sample{.operands = {{s.dtype, s.x}, {s.dtype, s.w}}, .attributes = s.attributes};
    if (i % 2 == 1) sample.operands.push_back({s.dtype, s.y});
    sample.operands.push_back({ops::wide(s.dtype), {s.w[0]}});
    // Bounds are kinks: finite differences see them where random numbers come near.
    if (i % 3 == 1) sample.attributes.set("low", 0.0), sample.check_gradient = false;
    if (i % 4 == 1) sample.attributes.set("high", 6.0), sample.check_gradient = false;
    op.samples.push_back(std::move(sample));
    ++i;
  }
  return op;
}

bool millrace::ops::is_fused_convolution(const Node& node) { return node.op == &op_fused_conv2d(); }
