#include "ops/attention.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

std::vector<Type> attention_grad_types(const TypeContext& c) {
  const Type &q = c.operands[0], &k = c.operands[1], &v = c.operands[2];
  ops::check_attention(c, q, k, v, 6);
  const Type rows{ops::wide(q.dtype), {q.shape[0], q.shape[1], q.shape[2]}};
  ops::check_operand(c, 3, "the result's gradient",
                     {q.dtype, {q.shape[0], q.shape[1], q.shape[2], v.shape[3]}});
  ops::check_operand(c, 4, "the log-sum-exp", rows);
  ops::check_operand(c, 5, "the inner products", rows);
  return {q, k, v};
}

std::vector<Value> attention_grad_body(Graph& graph, std::span<const Value> x, const Attributes& attributes) {
  ops::Build b(graph);
  const ops::AttentionGradOperands o = {x[0], x[1], x[2], x[3], x[4], x[5], x.size() > 6 ? x[6] : Value{}};
  const Shape q = b.shape(o.q), k = b.shape(o.k), v = b.shape(o.v);
  const DType dtype = b.dtype(o.q);
  const Dim rows = q[1] / k[1] * q[2];
  const ops::ScoreGradient s = ops::score_gradient(b, o, attributes);
  const auto folded = [&](Value value, const Dim& columns) {
    return b.reshape(b.cast(value, dtype), {q[0], k[1], rows, columns});
  };
  const Value scores = folded(b.mul(s.scores, ops::attention_scale(attributes, q[3].size())), k[2]);
  return {b.reshape(b.matmul(scores, o.k), q), b.matmul(scores, folded(o.q, q[3]), true, false),
          b.matmul(folded(s.weights, k[2]), folded(o.gradient, v[3]), true, false)};
}

}  // namespace

MILLRACE_OPERATOR(attention_grad) {
  Operator op;
  op.name = "attention_grad";
  op.op_class = OpClass::composite;
  op.doc =
      "The gradients of attention with respect to q, k and v. Operands: q, k, v, the gradient of the result, "
      "the "
      "log-sum-exp that attention gave, sum(result · its gradient) over the width minus the gradient of the "
      "log-sum-exp, "
      "both [batch, heads, queries], and the mask if there was one. (Dao, 2023)";
  op.min_operands = 6;
  op.max_operands = 7;
  op.attributes = ops::attention_attributes();
  op.types = attention_grad_types;
  op.body = attention_grad_body;
  op.tolerance = {.f32 = 1e-4, .f64 = 1e-11, .half = 3e-2};
  const auto sample = [&](DType dtype, const Shape& q, const Shape& k, Attributes attributes = {},
                          std::optional<Type> mask = {}) {
    const Type rows{ops::wide(dtype), {q[0], q[1], q[2]}};
    Sample s{.operands = {{dtype, q}, {dtype, k}, {dtype, k}, {dtype, q}, rows, rows},
             .attributes = std::move(attributes),
             .low = -1,
             .high = 1};
    if (mask) s.operands.push_back(*mask);
    op.samples.push_back(std::move(s));
  };
  sample(f32, {2, 3, 7, 8}, {2, 3, 9, 8});
  sample(f32, {1, 4, 6, 8}, {1, 2, 6, 8}, {{"causal", true}});
  sample(f32, {2, 2, 5, 4}, {2, 2, 6, 4}, {}, Type{boolean, {2, 1, 1, 6}});
  sample(f32, {1, 1, 1, 1}, {1, 1, 1, 1});
  sample(f32, {0, 2, 3, 4}, {0, 2, 3, 4});
  sample(f64, {1, 2, 3, 2}, {1, 1, 4, 2}, {{"causal", true}});
  sample(f64, {2, 1, 2, 2}, {2, 1, 3, 2}, {{"scale", 0.4}}, Type{f64, {2, 1, 2, 3}});
  sample(bf16, {2, 2, 5, 8}, {2, 2, 5, 8}, {{"causal", true}});
  sample(f16, {1, 2, 5, 8}, {1, 2, 4, 8});
  op.narrow_operands = 4;
  return op;
}
