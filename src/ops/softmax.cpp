#include <cmath>

#include <millrace/onnx_rule.h>

#include "ops/axis.h"
#include "ops/build.h"
#include "ops/empty_row.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

std::vector<Value> softmax_body(Graph& graph, std::span<const Value> operands, const Attributes& attributes) {
  ops::Build b(graph);
  const Value x = b.widen(operands[0]);
  const std::vector<int64_t> axis = {attributes.integer("axis")};
  const bool zero_empty = attributes.flag("zero_empty");
  Value highest = b.max(x, axis, true);
  if (zero_empty) highest = ops::finite_highest(b, highest);
  const Value e = b.unary("exp", b.sub(x, highest));
  Value sum = b.sum(e, axis, true);
  // That of a row that is not empty is at least 1.
  if (zero_empty) sum = b.binary("maximum", sum, b.fill(sum, 1));
  return {b.cast(b.mul(e, b.unary("reciprocal", sum)), b.dtype(operands[0]))};
}

std::vector<Value> softmax_gradient(const GradientContext& c) {
  ops::Build b(c.graph);
  const Value y = b.widen(c.results[0]), g = b.widen(c.result_gradients[0]);
  const Value inner = b.sum(b.mul(g, y), {c.node.attributes.integer("axis")}, true);
  return {b.cast(b.mul(y, b.sub(g, inner)), c.type(c.operands[0]).dtype)};
}

}  // namespace

MILLRACE_OPERATOR(softmax) {
  Operator op;
  op.name = "softmax";
  op.op_class = OpClass::composite;
  op.doc = "exp(x) / sum(exp(x)) along `axis`, computed without overflow; 16-bit floats are summed in f32.";
  op.attributes = {{"axis", Attribute(int64_t{-1}), "the axis that sums to 1; negative counts from the end"},
                   {"zero_empty", Attribute(false), "a row of only −∞ gives zeros instead of NaN"}};
  op.types = ops::float_type_with_axis;
  op.body = softmax_body;
  op.gradient = softmax_gradient;
  op.lowest = 0;
  op.highest = 1;
  op.logits = Logits::row;
  op.onnx = {"Softmax"};
  op.onnx_rule = [](const OnnxCall& c) {
    if (c.attributes().flag("zero_empty")) return std::vector<std::string>{};
    return c.one("Softmax", c.operands, {{"axis", c.attributes().integer("axis")}});
  };
  op.samples = ops::axis_samples();
  op.samples.push_back({.operands = {{f32, {2, 3}}},
                        .attributes = {{"zero_empty", true}},
                        .values = {{0, {-INFINITY, -INFINITY, -INFINITY, 1, -INFINITY, 2}}},
                        .check_gradient = false,
                        .note = "an empty row"});
  op.samples.push_back({.operands = {{f32, {2, 3}}},
                        .attributes = {{"zero_empty", true}},
                        .values = {{0, {-3.4e38, -3.4e38, -3.4e38, -1e31, -INFINITY, -1e31}}},
                        .check_gradient = false,
                        .note = "rows of the lowest numbers"});
  op.samples.push_back({.operands = {{f64, {2, 3}}}, .attributes = {{"zero_empty", true}}});
  op.samples.push_back(
      {.operands = {{f32, {3, 4}}}, .low = 80, .high = 4000, .check_gradient = false, .note = "large"});
  return op;
}
