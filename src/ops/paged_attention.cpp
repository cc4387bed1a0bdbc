#include <limits>

#include "base/format.h"
#include "ops/attention.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

std::vector<Type> paged_attention_types(const TypeContext& c) {
  const Type &q = c.operands[0], &cache = c.operands[1], &pages = c.operands[2], &positions = c.operands[3];
  if (!q.dtype.is_float() || cache.dtype != q.dtype) c.error("q and the cache must have one float dtype");
  if (pages.dtype != i64 || positions.dtype != i64) c.error("pages and positions must be i64");
  if (q.shape.rank() != 4) c.error("q must have the dimensions [batch, tokens, heads, width]");
  if (cache.shape.rank() != 3 || !cache.shape[0].is_static() || !cache.shape[1].is_static() ||
      cache.shape[2] != q.shape[3])
    c.error("the cache must have the dimensions [slots, 2 · shared heads, width]");
  if (!q.shape[2].is_static() || !q.shape[3].is_static())
    c.error("heads and width must be numbers, not named dimensions");
  if (pages.shape.rank() != 2 || pages.shape[0] != q.shape[0] || !pages.shape[1].is_static())
    c.error("the pages must have the dimensions [batch, pages of a row]");
  if (positions.shape.rank() != 2 || positions.shape[0] != q.shape[0] || positions.shape[1] != q.shape[1])
    c.error("the positions must have the dimensions [batch, tokens]");
  const int64_t shared = cache.shape[1].size() / 2, page = c.attributes.integer("page");
  if (cache.shape[1].size() % 2 != 0 || shared < 1 || q.shape[2].size() % shared != 0)
    c.error(fmt::format("{} heads of q cannot share {} of keys and values evenly", q.shape[2].size(),
                        cache.shape[1].str()));
  if (cache.shape[0].size() % page != 0)
    c.error(fmt::format("{} slots are no whole pages of {}", cache.shape[0].size(), page));
  if (c.operands.size() == 5) {
    const Type& bias = c.operands[4];
    if (bias.dtype != ops::wide(q.dtype) || bias.shape.rank() != 2 || !bias.shape[1].is_static() ||
        bias.shape[1].size() < 1 || (bias.shape[0] != 1 && bias.shape[0] != q.shape[2]))
      c.error(fmt::format("the bias must be {} [heads or 1, distances]", ops::wide(q.dtype).name()));
  }
  return {q};
}

/// What is added to the scores [batch, heads or 1, tokens, keys] of keys so far back; −∞ where that is
/// further than `bias` goes, or a key is later.
Value added_by_distance(ops::Build& b, Value bias, Value back) {
  const Shape table = b.shape(bias), scores = b.shape(back);
  const Value none = b.zeros(back), furthest = b.fill(back, static_cast<double>(table[1].size() - 1));
  const Value at = b.binary("minimum", b.binary("maximum", back, none), furthest);
  const Shape rows{scores[0], scores[2], scores[3]};
  // [heads, batch, tokens, keys]
  const Value found = b.graph().add("gather", {bias, b.reshape(at, rows)}, {{"axis", int64_t{1}}});
  const Value added = b.transpose(found, {1, 0, 2, 3});
  const Value seen = b.broadcast(b.binary("equal", at, back), b.shape(added));
  return b.select(seen, added, b.fill(added, -std::numeric_limits<double>::infinity()));
}

/// The rows of the cache that each row's keys stand in, then attention with later ones hidden.
std::vector<Value> paged_attention_body(Graph& graph, std::span<const Value> x,
                                        const Attributes& attributes) {
  ops::Build b(graph);
  const Shape q = b.shape(x[0]), cache = b.shape(x[1]), pages = b.shape(x[2]);
  const int64_t page = attributes.integer("page"), shared = cache[1].size() / 2;
  const int64_t keys = pages[1].size() * page, to_end = std::numeric_limits<int64_t>::max();
  const auto count = [&](int64_t size) {
    return graph.add("iota", {}, {{"shape", Shape{size}}, {"axis", int64_t{0}}, {"dtype", i64}});
  };
  const Value in_page = b.reshape(count(page), Shape{1, 1, page});
  const Value slots =
      b.add(b.mul(b.reshape(x[2], Shape{pages[0], pages[1], 1}), static_cast<double>(page)), in_page);
  const Value rows =
      graph.add("gather", {x[1], b.reshape(slots, Shape{pages[0], keys})}, {{"axis", int64_t{0}}});
  const auto part = [&](int64_t from) {
    const Value heads = graph.add("slice", {rows},
                                  {{"starts", std::vector<int64_t>{0, 0, from, 0}},
                                   {"ends", std::vector<int64_t>{to_end, to_end, from + shared, to_end}}});
    return ops::swap_heads(b, heads);
  };
  const Value key = b.reshape(count(keys), Shape{1, 1, 1, keys});
  const Value place = b.reshape(x[3], Shape{q[0], 1, q[1], 1});
  const Value mask =
      x.size() == 5 ? added_by_distance(b, x[4], b.sub(place, key)) : b.binary("less_equal", key, place);
  const Value y = graph.add("attention", {ops::swap_heads(b, x[0]), part(0), part(shared), mask},
                            {{"scale", attributes.number("scale")}});
  return {ops::swap_heads(b, y)};
}

}  // namespace

MILLRACE_OPERATOR(paged_attention) {
  Operator op;
  op.name = "paged_attention";
  op.op_class = OpClass::composite;
  op.doc =
      "attention of new tokens q [batch, tokens, heads, width] over the keys and values of all tokens of "
      "their row, theirs included, which lie in a cache [slots, 2 · shared heads, width]: a slot has a "
      "token's keys, then its values. A row's tokens stand in pages of `page` slots, which `pages` [batch, "
      "pages of a row] names in order. A token at position p sees the keys 0 … p; one at -1 sees none and "
      "gives zeros. (Kwon et al., 2023) With a bias [heads or 1, distances], bias[h, d] is added to the "
      "score of the key at p − d, and keys further back are not seen: a sliding window, ALiBi";
  op.min_operands = 4;
  op.max_operands = 5;
  op.attributes = {{"page", AttributeType::integer, "slots of a page", {.low = 1}},
                   {"scale", Attribute(0.0), "factor of the scores; 0: 1 / sqrt(width)"}};
  op.types = paged_attention_types;
  op.body = paged_attention_body;
  op.differentiable = false;
  op.tolerance = {.f32 = 1e-4, .f64 = 1e-11, .half = 3e-2};
  const auto sample = [&](DType dtype, const Shape& q, const Shape& cache, int64_t page,
                          const std::vector<double>& pages, const std::vector<double>& positions,
                          const Shape& bias = {}) {
    const int64_t each = static_cast<int64_t>(pages.size()) / q[0].size();
    op.samples.push_back({.operands = {{dtype, q}, {dtype, cache}, {i64, {q[0], each}}, {i64, {q[0], q[1]}}},
                          .attributes = {{"page", page}},
                          .values = {{2, pages}, {3, positions}}});
    if (bias.rank() > 0) op.samples.back().operands.push_back({ops::wide(dtype), bias});
  };
  sample(f32, {2, 1, 4, 8}, {96, 8, 8}, 16, {2, 5, 0, 1, 3, 4}, {17, 40});
  sample(f32, {2, 3, 4, 20}, {64, 4, 20}, 16, {3, 1, 2, 0}, {0, 1, -1, 29, 30, 31});
  sample(f32, {1, 2, 2, 5}, {12, 2, 5}, 4, {2, 0}, {5, 6});
  sample(f32, {1, 1, 6, 64}, {48, 12, 64}, 16, {1, -1, 7}, {40});
  sample(f64, {1, 2, 2, 3}, {8, 4, 3}, 4, {1}, {2, 3});
  sample(bf16, {1, 9, 2, 40}, {64, 4, 40}, 32, {1, 0}, {40, 41, 42, 43, 44, 45, 46, 47, 48});
  sample(f16, {1, 1, 2, 8}, {16, 4, 8}, 16, {0}, {4});
  // The second token sees less of its last page than the first.
  sample(f32, {1, 2, 2, 8}, {64, 4, 8}, 32, {1, 0}, {60, 33});
  // A bias for each head, a window for all, and one of a single key.
  sample(f32, {2, 2, 4, 8}, {96, 4, 8}, 16, {2, 5, 0, 1, 3, 4}, {17, 18, 40, -1}, {4, 50});
  sample(f32, {1, 2, 2, 8}, {64, 4, 8}, 32, {1, 0}, {60, 31}, {1, 20});
  sample(f32, {1, 1, 2, 20}, {48, 4, 20}, 16, {1, 2, 0}, {47}, {1, 1});
  sample(bf16, {1, 2, 4, 16}, {64, 4, 16}, 16, {1, 0, 3}, {40, 41}, {4, 18});
  sample(f64, {1, 2, 2, 3}, {8, 4, 3}, 4, {1}, {2, 3}, {2, 3});
  op.samples.push_back({.operands = {{f32, {0, 1, 2, 8}}, {f32, {16, 4, 8}}, {i64, {0, 1}}, {i64, {0, 1}}},
                        .attributes = {{"page", int64_t{16}}}});
  return op;
}
