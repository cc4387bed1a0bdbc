#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <millrace/operator.h>

#include "ops/build.h"
#include "ops/filled.h"
#include "ops/is.h"
#include "ops/matmul.h"
#include "passes/pass.h"
#include "passes/rules/axes.h"

namespace millrace {
namespace {

using Ints = std::vector<int64_t>;

/// What hides some of the scores: a number is added to them, or replaces them.
struct Mask {
  Value added, hidden;     // one of them; hidden: of truth values
  bool where = true;       // the truth value that hides
  double low = 0;          // what stands for hidden ones
  bool all_heads = false;  // the heads of all samples are one axis of it, in front
};

/// softmax(scale · q·kᵀ + masks) · v, however it was written.
struct Found {
  Value q, k, v;  // [batch, heads, length, width], or with the heads of all samples as one axis
  std::vector<Mask> masks;
  Shape scores;         // [batch, heads, queries, keys]
  Shape k_shape;        // that k is reshaped to
  bool turned = false;  // but it is [batch, heads, width, length]
  double scale = 1;
};

class AttentionFinder {
 public:
  explicit AttentionFinder(const Graph& graph)
      : graph_(graph), uses_(graph.use_counts()), rewrite_(graph), to_(rewrite_.graph()) {}

  Graph run() {
    rewrite_.go_through([&](int i) {
      const auto found = match(i);
      if (!found) return false;
      to_.set_origin(graph_.node(i).origin);
      rewrite_.set({i, 0}, write(*found));
      return true;
    });
    return rewrite_.finish();
  }

 private:
  std::optional<Found> match(int i) const {
    const auto product = ops::matmul_of(graph_.node(i));
    const int rank = graph_.node(i).types[0].shape.rank();
    if (!product || product->transpose_a || product->transpose_b || rank < 3 || rank > 4) return std::nullopt;
    Value scores = graph_.node(i).operands[0];
    take_view(scores);
    const int readers = take_guard(scores) ? 2 : 1;
    const Node& weights = graph_.node(scores);
    if (!ops::is(weights, "softmax") || uses_[scores.node] != readers) return std::nullopt;
    Found found;
    found.scores = weights.types[0].shape;
    const int64_t axis = weights.attributes.integer("axis");
    if (axis != -1 && axis != found.scores.rank() - 1) return std::nullopt;
    if (found.scores.rank() == 3) found.scores = {1, found.scores[0], found.scores[1], found.scores[2]};
    found.v = graph_.node(i).operands[1];
    scores = weights.operands[0];
    if (!take_masks(scores, found)) return std::nullopt;
    scores = scaled(scores, found.scale);
    const auto inner = ops::matmul_of(graph_.node(scores));
    if (!inner || inner->transpose_a || uses_[scores.node] != 1) return std::nullopt;
    found.q = scaled(graph_.node(scores).operands[0], found.scale);
    found.k = scaled(graph_.node(scores).operands[1], found.scale);
    found.k_shape = graph_.type(found.k).shape;
    if (!inner->transpose_b) {
      std::swap(found.k_shape[found.k_shape.rank() - 2], found.k_shape[found.k_shape.rank() - 1]);
      const auto plain = untransposed(found.k);
      found.turned = !plain;
      if (plain) found.k = *plain;
    }
    return fits(found) ? std::optional(found) : std::nullopt;
  }

  /// [batch, heads, queries, keys] and [batch · heads, queries, keys] are the same scores.
  void take_view(Value& scores) const {
    const Node& node = graph_.node(scores);
    if (!node.op->reshapes() || uses_[scores.node] != 1) return;
    const Shape &from = graph_.type(node.operands[0]).shape, &to = node.types[0].shape;
    const bool ranks = (from.rank() == 3 && to.rank() == 4) || (from.rank() == 4 && to.rank() == 3);
    if (ranks && from.is_static() && to.is_static() && from.back() == to.back() &&
        from[from.rank() - 2] == to[to.rank() - 2])
      scores = node.operands[0];
  }

  /// Zeros in place of the NaN of a query that sees nothing are what attention gives.
  bool take_guard(Value& weights) const {
    const Node& node = graph_.node(weights);
    if (!node.op->chooses || uses_[weights.node] != 1 || ops::number_of(graph_, node.operands[1]) != 0.0)
      return false;
    const Value test = node.operands[0];
    if (!ops::is(graph_.node(test), "is_nan") || uses_[test.node] != 1) return false;
    if (graph_.node(test).operands[0] != node.operands[2]) return false;
    weights = node.operands[2];
    return true;
  }

  /// A lower bound that keeps sums of masks finite.
  void take_bound(Value& scores) const {
    const Node& node = graph_.node(scores);
    if (!node.op->is(ScalarOp::max) || uses_[scores.node] != 1) return;
    const std::optional<double> bound = ops::number_of(graph_, node.operands[1]);
    if (bound && *bound <= std::numeric_limits<float>::lowest()) scores = node.operands[0];
  }

  /// Takes masks off the scores. False where something is done to them that cannot be one.
  bool take_masks(Value& scores, Found& found) const {
    for (;;) {
      take_view(scores);
      take_bound(scores);
      const Node& node = graph_.node(scores);
      const Shape& shape = node.types[0].shape;
      if (shape.rank() == 4 && shape != found.scores) {
        if (found.scores[0] != 1) return false;  // two orders of the axes
        found.scores = shape;
      }
      const bool adds = node.op->is(ScalarOp::add);
      if (!adds && !node.op->chooses) return true;
      if (uses_[scores.node] != 1) return false;
      const size_t sides = node.operands.size() - 2;
      const size_t side = is_scores(node.operands[sides]) ? sides : sides + 1;
      if (!is_scores(node.operands[side])) return false;
      const Value other = node.operands[2 * sides + 1 - side];
      Mask mask;
      if (adds) {
        mask.added = unrepeated(other);
      } else {
        const std::optional<double> low = ops::number_of(graph_, other);
        mask.hidden = unrepeated(node.operands[0]);
        mask.where = side == 2;
        mask.low = low.value_or(0);
        if (!hides(mask, graph_.type(scores))) return false;
      }
      mask.all_heads = shape.rank() == 3 && type_of(mask).shape.rank() == 3 && type_of(mask).shape[0] != 1;
      found.masks.push_back(mask);
      scores = node.operands[side];
    }
  }

  const Type& type_of(const Mask& mask) const {
    return graph_.type(mask.added.valid() ? mask.added : mask.hidden);
  }

  /// A product, behind factors and masks.
  bool is_scores(Value value) const {
    double factor = 1;
    take_view(value);
    take_bound(value);
    value = scaled(value, factor);
    const Node& node = graph_.node(value);
    if (ops::matmul_of(node)) return true;
    const bool masks = node.op->is(ScalarOp::add) || node.op->chooses;
    return masks && (is_scores(node.operands[node.operands.size() - 2]) || is_scores(node.operands.back()));
  }

  Value unrepeated(Value value) const {
    while (graph_.node(value).op->broadcasts) value = graph_.node(value).operands[0];
    return value;
  }

  /// Whether a number is as good added as put in the place of a score. What is written over a whole row gives
  /// equal shares: only numbers that swallow any score give them, too.
  bool hides(const Mask& mask, const Type& scores) const {
    constexpr double vanishes = -1e4;
    const double swallows = scores.dtype == f64 ? -1e21 : -1e12;
    if (mask.low <= swallows) return true;
    const Array* hidden = graph_.constant_value(mask.hidden);
    if (mask.low > vanishes || !hidden || hidden->shape().rank() == 0) return false;
    const int64_t keys = hidden->shape().back().size();
    for (int64_t row = 0; row < hidden->count(); row += keys) {
      bool sees = false;
      for (int64_t k = 0; k < keys; ++k) sees |= (hidden->at(row + k) != 0) != mask.where;
      if (!sees) return false;
    }
    return true;
  }

  /// What `value` is a multiple of, where nobody else reads the multiple.
  Value scaled(Value value, double& factor) const {
    for (;;) {
      const Node& node = graph_.node(value);
      const bool divides = node.op->is(ScalarOp::div);
      if (uses_[value.node] != 1 || (!divides && !node.op->is(ScalarOp::mul))) return value;
      std::optional<double> number = ops::number_of(graph_, node.operands[1]);
      Value rest = node.operands[0];
      if (!number && !divides) {
        number = ops::number_of(graph_, node.operands[0]);
        rest = node.operands[1];
      }
      if (!number || *number == 0 || !std::isfinite(*number)) return value;
      factor *= divides ? 1 / *number : *number;
      value = rest;
    }
  }

  /// What becomes `value` with its last two axes exchanged by a reshape alone: what it was made of by
  /// exchanging them and by reshapes of the axes before them.
  std::optional<Value> untransposed(Value value) const {
    Value at = value;
    for (; graph_.node(at).op->reshapes(); at = graph_.node(at).operands[0]) {
      const Shape &to = graph_.type(at).shape, &from = graph_.type(graph_.node(at).operands[0]).shape;
      if (from.rank() < 2 || from.back() != to.back() || from[from.rank() - 2] != to[to.rank() - 2])
        return std::nullopt;
    }
    const Node& node = graph_.node(at);
    if (!node.op->permutation || !swaps_last_two(node.op->permutation(node))) return std::nullopt;
    return node.operands[0];
  }

  bool fits(const Found& f) const {
    const Type &q = graph_.type(f.q), &k = graph_.type(f.k), &v = graph_.type(f.v);
    const int rank = q.shape.rank();
    if (f.k_shape.rank() != rank || v.shape.rank() != rank || f.scores.rank() != 4 || !q.dtype.is_float())
      return false;
    if (f.scores[1] == 0) return false;  // of no heads there is nothing to attend
    if (rank == 3) {
      if (!q.shape.is_static() || !v.shape.is_static() || !f.scores.is_static()) return false;
      // Wider ones are no heads, and products alone are faster (0.9 of the time at 256, 0.6 to 0.75 from 512
      // on).
      constexpr int64_t widest = 128;
      if (q.shape.back().size() > widest || v.shape.back().size() > widest) return false;
      if (q.shape[0] != f.scores[0] * f.scores[1]) return false;
    } else if (rank != 4 || f.scores != Shape{q.shape[0], q.shape[1], q.shape[2], f.k_shape[2]}) {
      return false;
    }
    for (const Mask& mask : f.masks) {
      const Type& type = type_of(mask);
      if (type.shape.rank() > 4 || (mask.added.valid() && type.dtype != q.dtype)) return false;
    }
    for (int d = 0; d < rank - 1; ++d)
      if ((d < rank - 2 && q.shape[d] != f.k_shape[d]) || v.shape[d] != f.k_shape[d]) return false;
    return q.dtype == k.dtype && q.dtype == v.dtype && q.shape.back() == f.k_shape.back();
  }

  Value write(const Found& f) {
    ops::Build b(to_);
    const Value y = written(b, f);
    const Shape& q = graph_.type(f.q).shape;
    return q.rank() == 4 ? y : b.reshape(y, {q[0], q[1], b.shape(y).back()});
  }

  /// With the batch and the heads as axes of their own.
  Value by_heads(ops::Build& b, const Found& f, Value x) const {
    const Shape& shape = b.shape(x);
    return shape.rank() == 4 ? x : b.reshape(x, {f.scores[0], f.scores[1], shape[1], shape[2]});
  }

  Value written(ops::Build& b, const Found& f) {
    const Attributes attributes{{"causal", false}, {"scale", f.scale}};
    if (f.masks.empty())
      if (const auto packed = projection(f)) {
        Attributes own = attributes;
        const int64_t heads = graph_.type(f.q).shape[1].size();
        own.set("heads", heads);
        const Shape& q = graph_.type(f.q).shape;
        const Value x = b.reshape(rewrite_[*packed], {q[0], q[2], Dim(3 * heads), q[3]});
        return b.transpose(to_.add("self_attention", {x}, own), {0, 2, 1, 3});
      }
    Value k, v = rewrite_[f.v];
    const std::optional<Value> shared_k = f.turned ? std::nullopt : shared(f.k), shared_v = shared(f.v);
    if (shared_k && shared_v && heads_of(*shared_k) == heads_of(*shared_v)) {
      const Shape& all = f.k_shape;
      Shape few{all[0], heads_of(*shared_k), all[2], all[3]};
      k = b.reshape(rewrite_[*shared_k], few);
      few[3] = graph_.type(f.v).shape[3];
      v = b.reshape(rewrite_[*shared_v], few);
    } else {
      const Value plain = f.turned ? rewrite_[f.k] : b.reshape(rewrite_[f.k], f.k_shape);
      k = by_heads(b, f, plain);
      if (f.turned) k = b.transpose(k, {0, 1, 3, 2});
      v = by_heads(b, f, v);
    }
    std::vector<Value> operands = {by_heads(b, f, rewrite_[f.q]), k, v};
    if (!f.masks.empty()) operands.push_back(mask_of(b, f));
    return to_.add("attention", operands, attributes);
  }

  /// Of keys or values that are repeated for neighbouring heads: what they were before, [batch, heads, 1,
  /// length, width] or of one head [batch, 1, length, width].
  std::optional<Value> shared(Value value) const {
    const Shape& whole = graph_.type(value).shape;
    if (whole.rank() != 4) return std::nullopt;
    Value repeated = value;
    if (graph_.node(value).op->reshapes()) repeated = graph_.node(value).operands[0];
    if (!graph_.node(repeated).op->broadcasts) return std::nullopt;
    const Value source = graph_.node(repeated).operands[0];
    const Shape &from = graph_.type(source).shape, &to = graph_.type(repeated).shape;
    const bool one = from == Shape{whole[0], 1, whole[2], whole[3]} && to == whole;
    if (one) return source;
    if (to.rank() != 5 || from != Shape{to[0], to[1], 1, to[3], to[4]}) return std::nullopt;
    const bool neighbours = whole == Shape{to[0], to[1] * to[2], to[3], to[4]};
    return neighbours ? std::optional(source) : std::nullopt;
  }
  Dim heads_of(Value shared) const { return graph_.type(shared).shape[1]; }

  /// All masks as one that is added.
  Value mask_of(ops::Build& b, const Found& f) {
    Value sum;
    for (const Mask& mask : f.masks) {
      Value added = mask.added.valid() ? by_heads_of(b, f, mask, mask.added) : Value{};
      if (mask.hidden.valid()) {
        const Value hidden = by_heads_of(b, f, mask, mask.hidden);
        const auto number = [&](double value) {
          return b.broadcast(b.scalar(graph_.type(f.q).dtype, value), b.shape(hidden));
        };
        added = b.select(hidden, number(mask.where ? mask.low : 0), number(mask.where ? 0 : mask.low));
      }
      sum = sum.valid() ? b.add(sum, added) : added;
    }
    return sum;
  }

  Value by_heads_of(ops::Build& b, const Found& f, const Mask& mask, Value value) const {
    return mask.all_heads ? by_heads(b, f, rewrite_[value]) : rewrite_[value];
  }

  /// The one value [batch, length, 3 · heads · width] whose thirds q, k and v are, as a merged projection
  /// gives them.
  std::optional<Value> projection(const Found& f) const {
    std::optional<Value> all;
    const Shape& q = graph_.type(f.q).shape;
    if (f.turned || q.rank() != 4 || f.k_shape != q) return std::nullopt;
    int64_t part = 0;
    for (Value at : {f.q, f.k, f.v}) {
      while (graph_.node(at).op->reshapes()) at = graph_.node(at).operands[0];
      const Node& slice = graph_.node(at);
      const Shape whole{Dim(3), q[0], q[1], q[2], q[3]};
      if (!ops::is(slice, "slice") || graph_.type(slice.operands[0]).shape != whole) return std::nullopt;
      if (slice.types[0].shape[0] != Dim(1) || slice.attributes.ints("starts")[0] != part)
        return std::nullopt;
      for (int d = 1; d < 5; ++d)
        if (slice.types[0].shape[d] != whole[d]) return std::nullopt;
      if (!all) all = slice.operands[0];
      if (*all != slice.operands[0]) return std::nullopt;
      ++part;
    }
    const Node& turned = graph_.node(*all);
    if (!turned.op->permutation || turned.op->permutation(turned) != Ints{2, 0, 3, 1, 4}) return std::nullopt;
    return turned.operands[0];
  }

  const Graph& graph_;
  std::vector<int> uses_;
  Rewriter rewrite_;
  Graph& to_;
};

}  // namespace

// Attention that was written as products and a softmax (as exporters of other programs do) becomes the
// operator, whose kernels keep no scores in memory.
static Graph recognise_attention(const Graph& graph, const PassContext& context) {
  return eliminate_dead(AttentionFinder(graph).run(), context);
}

MILLRACE_PASS(recognise_attention){.name = "recognise-attention",
                                   .doc = "products around a softmax that are attention become that operator",
                                   .place = 25,
                                   .run = recognise_attention};

}  // namespace millrace
