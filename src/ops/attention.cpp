#include "ops/attention.h"

#include <limits>

#include "ops/empty_row.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

std::vector<Type> attention_types(const TypeContext& c) {
  const Type &q = c.operands[0], &v = c.operands[2];
  ops::check_attention(c, q, c.operands[1], v, 3);
  return {{q.dtype, {q.shape[0], q.shape[1], q.shape[2], v.shape[3]}},
          {ops::wide(q.dtype), {q.shape[0], q.shape[1], q.shape[2]}}};
}

/// log(sum(exp(scores))) over the last axis, kept; 0 where all are −∞. By the values that softmax computes,
/// too.
Value log_sum_exp(ops::Build& b, Value scores, bool may_be_empty) {
  const Value own = b.max(scores, {-1}, true), highest = may_be_empty ? ops::finite_highest(b, own) : own;
  Value sum = b.sum(b.unary("exp", b.sub(scores, highest)), {-1}, true);
  if (may_be_empty) sum = b.binary("maximum", sum, b.fill(sum, 1));
  const Value result = b.add(highest, b.unary("log", sum));
  if (!may_be_empty) return result;
  return b.select(b.binary("greater", own, b.fill(own, -std::numeric_limits<double>::infinity())), result,
                  b.zeros(result));
}

std::vector<Value> attention_body(Graph& graph, std::span<const Value> operands,
                                  const Attributes& attributes) {
  ops::Build b(graph);
  const Shape q = b.shape(operands[0]), k = b.shape(operands[1]), v = b.shape(operands[2]);
  const Value mask = operands.size() > 3 ? operands[3] : Value{};
  const Value scores = ops::attention_scores(b, operands[0], operands[1], mask, attributes);
  const bool may_be_empty = ops::may_see_nothing(q, k, mask.valid(), attributes);
  const Value weights = b.cast(b.softmax(scores, -1, may_be_empty), b.dtype(operands[0]));
  // Heads of q that share one of k and v are further rows of it.
  const Value mixed = b.matmul(b.reshape(weights, {q[0], k[1], q[1] / k[1] * q[2], k[2]}), operands[2]);
  const Value log_sum = log_sum_exp(b, scores, may_be_empty);
  return {b.reshape(mixed, {q[0], q[1], q[2], v[3]}), b.reshape(log_sum, {q[0], q[1], q[2]})};
}

std::vector<Value> attention_gradient(const GradientContext& c) {
  ops::Build b(c.graph);
  const Value mask = c.operands.size() > 3 ? c.operands[3] : Value{};
  const Value g = c.result_gradients[0].valid() ? c.result_gradients[0] : b.zeros(c.results[0]);
  const Value inner = ops::attention_inner(b, c.results[0], g, c.result_gradients[1]);
  std::vector<Value> operands = {c.operands[0], c.operands[1], c.operands[2], g, c.results[1], inner};
  if (mask.valid()) operands.push_back(mask);
  const Value first = c.graph.add("attention_grad", operands, c.node.attributes);
  std::vector<Value> parts = {first, {first.node, 1}, {first.node, 2}};
  if (!mask.valid()) return parts;
  parts.emplace_back();
  if (c.type(mask).dtype.is_float())
    parts.back() = ops::mask_gradient(
        b, {c.operands[0], c.operands[1], c.operands[2], g, c.results[1], inner, mask}, c.node.attributes);
  return parts;
}

std::vector<Sample> attention_samples() {
  std::vector<Sample> samples;
  const auto add = [&](DType dtype, const Shape& q, const Shape& k, Attributes attributes = {},
                       std::optional<Type> mask = {}) {
    Sample sample{.operands = {{dtype, q}, {dtype, k}, {dtype, k}}, .attributes = std::move(attributes)};
    if (mask) sample.operands.push_back(*mask);
    samples.push_back(std::move(sample));
  };
  add(f32, {2, 3, 7, 8}, {2, 3, 9, 8});
  add(f32, {1, 4, 6, 8}, {1, 2, 6, 8}, {{"causal", true}});
  add(f32, {2, 2, 5, 4}, {2, 1, 9, 4}, {{"causal", true}, {"scale", 0.3}});
  add(f32, {2, 2, 5, 4}, {2, 2, 6, 4}, {}, Type{boolean, {2, 1, 1, 6}});
  add(f32, {2, 2, 5, 4}, {2, 2, 6, 4}, {}, Type{f32, {5, 6}});
  add(f32, {1, 1, 1, 1}, {1, 1, 1, 1});
  add(f32, {0, 2, 3, 4}, {0, 2, 3, 4});
  add(f64, {1, 2, 3, 2}, {1, 1, 4, 2}, {{"causal", true}});
  add(f64, {1, 2, 3, 2}, {1, 2, 2, 2}, {{"causal", true}});
  add(f64, {2, 1, 2, 2}, {2, 1, 3, 2}, {}, Type{f64, {2, 1, 2, 3}});
  add(bf16, {2, 2, 5, 8}, {2, 2, 5, 8}, {{"causal", true}});
  add(f16, {1, 2, 5, 8}, {1, 2, 4, 8});
  samples.push_back({.operands = {{f64, {1, 2, 3, 2}}, {f64, {1, 1, 2, 2}}, {f64, {1, 1, 2, 3}}}});
  return samples;
}

}  // namespace

MILLRACE_OPERATOR(attention) {
  Operator op;
  op.name = "attention";
  op.op_class = OpClass::composite;
  op.doc =
      "softmax(scale · q·kᵀ + mask) · v for q [batch, heads, queries, width], k and v [batch, shared heads, "
      "keys, width]; "
      "neighbouring heads of q share one of k and v. An optional mask is bool (true: attend) or added, and "
      "broadcast. "
      "`causal` lets query i see the keys up to i + keys − queries: the last query is at the last key. A "
      "query that sees "
      "no key gives zeros. The softmax is computed in f32 for 16-bit floats. The second result is the "
      "logarithm of the "
      "softmax's denominator [batch, heads, queries] (0 where no key is seen). (Vaswani et al., 2017)";
  op.min_operands = 3;
  op.max_operands = 4;
  op.attributes = ops::attention_attributes();
  op.types = attention_types;
  op.body = attention_body;
  op.gradient = attention_gradient;
  op.tolerance = {.f32 = 1e-4, .f64 = 1e-11, .half = 3e-2};
  op.samples = attention_samples();
  op.narrow_operands = 3;
  return op;
}
