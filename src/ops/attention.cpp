#include <cmath>
#include <limits>

#include "base/format.h"
#include "ops/build.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

std::vector<Type> attention_types(const TypeContext& c) {
  const Type &q = c.operands[0], &k = c.operands[1], &v = c.operands[2];
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
  if (c.operands.size() > 3) {
    const Type& mask = c.operands[3];
    if (!mask.dtype.is_bool() && mask.dtype != q.dtype && mask.dtype != ops::wide(q.dtype))
      c.error("the mask must be bool (true: attend) or a float that is added to the scores");
    bool fits = mask.shape.rank() <= 4;
    for (int d = 1; fits && d <= mask.shape.rank(); ++d)
      fits = mask.shape[mask.shape.rank() - d] == 1 || mask.shape[mask.shape.rank() - d] == scores[4 - d];
    if (!fits)
      c.error(
          fmt::format("the mask must be broadcastable to [batch, heads, queries, keys] = {}", scores.str()));
  }
  if (c.attributes.flag("causal") && q.shape[2] != k.shape[2] &&
      (!q.shape[2].is_static() || !k.shape[2].is_static()))
    c.error("causal attention over different lengths needs them as numbers, not named dimensions");
  return {{q.dtype, {q.shape[0], q.shape[1], q.shape[2], v.shape[3]}}};
}

/// bool [queries, keys]: true where the key is not later than the query, the last query being at the last key.
Value causal_mask(ops::Build& b, const Dim& queries, const Dim& keys) {
  const Shape shape = {queries, keys};
  const double ahead = queries == keys ? 0 : static_cast<double>(keys.size() - queries.size());
  const Value query = b.graph().add("iota", {}, {{"shape", shape}, {"axis", int64_t{0}}});
  const Value key = b.graph().add("iota", {}, {{"shape", shape}, {"axis", int64_t{1}}});
  return b.binary("less_equal", key, ahead == 0 ? query : b.add(query, ahead));
}

std::vector<Value> attention_body(Graph& graph, std::span<const Value> operands,
                                  const Attributes& attributes) {
  ops::Build b(graph);
  const Shape q = b.shape(operands[0]), k = b.shape(operands[1]), v = b.shape(operands[2]);
  const DType dtype = b.dtype(operands[0]);
  // Heads of q that share one of k are further rows of it: no copy of k and v.
  const Dim rows = q[1] / k[1] * q[2];
  const Value folded = b.reshape(operands[0], {q[0], k[1], rows, q[3]});
  Value scores = b.reshape(b.matmul(folded, operands[1], false, true), {q[0], q[1], q[2], k[2]});
  const double scale = attributes.number("scale");
  scores = b.mul(b.widen(scores), scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(q[3].size())));
  const Value never = b.scalar(b.dtype(scores), -std::numeric_limits<double>::infinity());
  const bool causal = attributes.flag("causal");
  if (causal) scores = b.select(causal_mask(b, q[2], k[2]), scores, never);
  if (operands.size() > 3)
    scores = b.dtype(operands[3]).is_bool() ? b.select(operands[3], scores, never)
                                            : b.add(scores, b.cast(operands[3], b.dtype(scores)));
  const bool may_be_empty = operands.size() > 3 || (causal && q[2] != k[2] && q[2].size() > k[2].size());
  const Value weights = b.cast(b.softmax(scores, -1, may_be_empty), dtype);
  const Value mixed = b.matmul(b.reshape(weights, {q[0], k[1], rows, k[2]}), operands[2]);
  return {b.reshape(mixed, {q[0], q[1], q[2], v[3]})};
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
      "no key gives zeros. The softmax is computed in f32 for 16-bit floats. (Vaswani et al., 2017)";
  op.min_operands = 3;
  op.max_operands = 4;
  op.attributes = {{"causal", Attribute(false), "hide later keys"},
                   {"scale", Attribute(0.0), "factor of the scores; 0: 1 / sqrt(width)"}};
  op.types = attention_types;
  op.body = attention_body;
  op.tolerance = {.f32 = 1e-4, .f64 = 1e-11, .half = 3e-2};
  op.samples = attention_samples();
  return op;
}
