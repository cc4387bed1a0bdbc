#include <cmath>
#include <limits>

#include "base/format.h"
#include "ops/attention.h"

const millrace::Operator& op_attention();
const millrace::Operator& op_attention_grad();
const millrace::Operator& op_self_attention();
const millrace::Operator& op_self_attention_grad();

namespace millrace::ops {
namespace {

/// bool [queries, keys]: true where the key is not later than the query, the last query being at the last
/// key.
Value causal_mask(Build& b, const Dim& queries, const Dim& keys) {
  const Shape shape = {queries, keys};
  const double ahead = queries == keys ? 0 : static_cast<double>(keys.size() - queries.size());
  const Value query = b.graph().add("iota", {}, {{"shape", shape}, {"axis", int64_t{0}}});
  const Value key = b.graph().add("iota", {}, {{"shape", shape}, {"axis", int64_t{1}}});
  return b.binary("less_equal", key, ahead == 0 ? query : b.add(query, ahead));
}

/// q·kᵀ, or g·vᵀ, where heads of the left side that share one of the right are further rows of it: no copies.
Value shared_product(Build& b, Value left, Value right) {
  const Shape l = b.shape(left), r = b.shape(right);
  const Value folded = b.reshape(left, {l[0], r[1], l[1] / r[1] * l[2], l[3]});
  return b.widen(b.reshape(b.matmul(folded, right, false, true), {l[0], l[1], l[2], r[2]}));
}

/// [batch, heads, queries] as a column for [batch, heads, queries, keys].
Value column(Build& b, Value rows) {
  Shape shape = b.shape(rows);
  shape.push_back(1);
  return b.reshape(rows, shape);
}

}  // namespace

std::vector<AttributeSpec> attention_attributes() {
  return {{"causal", Attribute(false), "hide later keys"},
          {"scale", Attribute(0.0), "factor of the scores; 0: 1 / sqrt(width)"}};
}

void check_attention(const TypeContext& c, const Type& q, const Type& k, const Type& v, size_t mask_at) {
  const Type* const mask = c.operands.size() > mask_at ? &c.operands[mask_at] : nullptr;
  if (!q.dtype.is_float() || k.dtype != q.dtype || v.dtype != q.dtype)
    c.error("q, k and v must have one float dtype");
  if (q.shape.rank() != 4 || k.shape.rank() != 4 || v.shape.rank() != 4)
    c.error("q, k and v must have the dimensions [batch, heads, length, width]");
  if (k.shape[0] != q.shape[0] || v.shape[0] != q.shape[0]) c.error("q, k and v must have the same batch");
  if (k.shape[1] != v.shape[1] || k.shape[2] != v.shape[2])
    c.error("k and v must have the same heads and length");
  if (q.shape[3] != k.shape[3]) c.error("q and k must have the same width");
  const int64_t heads = q.shape[1].size(), shared = k.shape[1].size();
  if (shared < 1 || heads % shared != 0)
    c.error(fmt::format("{} heads of q cannot share {} heads of k and v evenly", heads, shared));
  if (!q.shape[3].is_static()) c.error("the width must be a number, not a named dimension");
  const Shape scores = {q.shape[0], q.shape[1], q.shape[2], k.shape[2]};
  if (mask) {
    if (!mask->dtype.is_bool() && mask->dtype != q.dtype && mask->dtype != wide(q.dtype))
      c.error("the mask must be bool (true: attend) or a float that is added to the scores");
    bool fits = mask->shape.rank() <= 4;
    for (int d = 1; fits && d <= mask->shape.rank(); ++d)
      fits = mask->shape[mask->shape.rank() - d] == 1 || mask->shape[mask->shape.rank() - d] == scores[4 - d];
    if (!fits)
      c.error(
          fmt::format("the mask must be broadcastable to [batch, heads, queries, keys] = {}", scores.str()));
  }
  if (c.attributes.flag("causal") && q.shape[2] != k.shape[2] &&
      (!q.shape[2].is_static() || !k.shape[2].is_static()))
    c.error("causal attention over different lengths needs them as numbers, not named dimensions");
}

void check_packed_attention(const TypeContext& c, size_t mask_at) {
  const Type& x = c.operands[0];
  const int64_t heads = c.attributes.integer("heads"), shared = (x.shape[2].size() - heads) / 2;
  if (shared < 1 || heads + 2 * shared != x.shape[2].size())
    c.error(fmt::format("{} heads of q leave no two equal parts of {} for k and v", heads, x.shape[2].str()));
  const Type q{x.dtype, {x.shape[0], heads, x.shape[1], x.shape[3]}},
      k{x.dtype, {x.shape[0], shared, x.shape[1], x.shape[3]}};
  check_attention(c, q, k, k, mask_at);
}

void check_operand(const TypeContext& c, int index, std::string_view what, const Type& expected) {
  if (c.operands[index] != expected) c.error(fmt::format("{} must be {}", what, expected.str()));
}

double attention_scale(const Attributes& attributes, int64_t width) {
  const double scale = attributes.number("scale");
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(width));
}

bool may_see_nothing(const Shape& q, const Shape& k, bool masked, const Attributes& attributes) {
  return masked || (attributes.flag("causal") && q[2] != k[2] && q[2].size() > k[2].size());
}

Value attention_scores(Build& b, Value q, Value k, Value mask, const Attributes& attributes) {
  const Shape queries = b.shape(q), keys = b.shape(k);
  Value scores = b.mul(shared_product(b, q, k), attention_scale(attributes, queries[3].size()));
  const Value never = b.scalar(b.dtype(scores), -std::numeric_limits<double>::infinity());
  if (attributes.flag("causal")) scores = b.select(causal_mask(b, queries[2], keys[2]), scores, never);
  if (!mask.valid()) return scores;
  return b.dtype(mask).is_bool() ? b.select(mask, scores, never)
                                 : b.add(scores, b.cast(mask, b.dtype(scores)));
}

ScoreGradient score_gradient(Build& b, const AttentionGradOperands& o, const Attributes& attributes) {
  const Value scores = attention_scores(b, o.q, o.k, o.mask, attributes);
  const Value weights = b.unary("exp", b.sub(scores, column(b, o.log_sum)));
  const Value arrived = shared_product(b, o.gradient, o.v);
  return {weights, b.mul(weights, b.sub(arrived, column(b, o.inner)))};
}

Value attention_inner(Build& b, Value result, Value gradient, Value log_sum_gradient) {
  const Value inner = b.sum(b.mul(b.widen(result), b.widen(gradient)), {-1}, false);
  return log_sum_gradient.valid() ? b.sub(inner, log_sum_gradient) : inner;
}

Value mask_gradient(Build& b, const AttentionGradOperands& o, const Attributes& attributes) {
  const Type mask = b.type(o.mask);
  return b.cast(b.sum_to(score_gradient(b, o, attributes).scores, mask.shape), mask.dtype);
}

Unpacked unpack_heads(Build& b, Value packed, int64_t heads) {
  const Shape shape = b.shape(packed);
  const int64_t shared = (shape[2].size() - heads) / 2, to_end = std::numeric_limits<int64_t>::max();
  const auto part = [&](int64_t from, int64_t count) {
    return swap_heads(b,
                      b.graph().add("slice", {packed},
                                    {{"starts", std::vector<int64_t>{0, 0, from, 0}},
                                     {"ends", std::vector<int64_t>{to_end, to_end, from + count, to_end}}}));
  };
  return {part(0, heads), part(heads, shared), part(heads + shared, shared)};
}

Value swap_heads(Build& b, Value x) { return b.transpose(x, {0, 2, 1, 3}); }

std::optional<AttentionForm> attention_form(const Node& node) {
  if (node.op == &op_attention()) return AttentionForm{false, false};
  if (node.op == &op_attention_grad()) return AttentionForm{false, true};
  if (node.op == &op_self_attention()) return AttentionForm{true, false};
  if (node.op == &op_self_attention_grad()) return AttentionForm{true, true};
  return std::nullopt;
}

}  // namespace millrace::ops
