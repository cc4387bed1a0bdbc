#include <algorithm>
#include <map>

#include <millrace/operator.h>

#include "base/contains.h"
#include "ir/values.h"
#include "ops/build.h"
#include "ops/scatter_add.h"
#include "passes/pass.h"

namespace millrace {
namespace {

// A table is worth it when most of its rows have no gradient and it does not fit into a cache.
constexpr int64_t kLeastTableBytes = 4 << 20, kLeastRowsAnIndex = 4;

/// Rewrites scatter_add(0, indices, updates) into gather(sums, slots): `sums` has a row for each index, where
/// the first of equal indices holds the sum of them all, and `slots` says for each row of the table which of
/// them is its own, or −1. A gather is fused into its readers, so that the dense gradient, mostly zeros,
/// never exists.
class SparseGradients {
 public:
  SparseGradients(const Graph& graph, bool exact)
      : graph_(graph), exact_(exact), rewrite_(graph), users_(users_of(graph)) {}

  Graph run() {
    rewrite_.go_through([&](int i) {
      rewrite_.graph().set_origin(graph_.node(i).origin);
      if (is_sparse(i))
        rewrite_.set({i, 0}, gathered(i));
      else if (const Value sum = sum_of_rows(i); sum.valid())
        rewrite_.set({i, 0}, sum);
      else
        return false;
      return true;
    });
    return rewrite_.finish();
  }

 private:
  bool is_sparse(int i) const {
    const Node& node = graph_.node(i);
    const auto sum = ops::row_sum(graph_, {i, 0});
    if (!sum || contains(graph_.outputs(), Value{i, 0}) || users_[i].empty()) return false;
    const Type& table = node.types[0];
    const Shape& indices = graph_.type(sum->indices).shape;
    if (!table.dtype.is_float() || table.shape.rank() != 2) return false;
    if (table.bytes() < kLeastTableBytes || indices.count() * kLeastRowsAnIndex > table.shape[0].size() ||
        indices.count() == 0 || table.shape[0].size() > INT32_MAX)
      return false;
    // What is not fused would have to store it after all.
    return std::all_of(users_[i].begin(), users_[i].end(), [&](int u) {
      const OpClass kind = graph_.node(u).op->op_class;
      return kind == OpClass::elementwise || kind == OpClass::reduction;
    });
  }

  Value gathered(int i) {
    const Node& node = graph_.node(i);
    Graph& to = rewrite_.graph();
    ops::Build b(to);
    const Value indices = rewrite_[node.operands[1]], updates = rewrite_[node.operands[2]];
    const int64_t count = b.shape(indices).count(), rows = node.types[0].shape[0].size();
    const Value flat = b.reshape(indices, {count});
    const Value all = b.reshape(updates, {count, node.types[0].shape[1]});
    const Value first = to.add("first_occurrence", {flat});
    const Value zeros = b.zeros(all);
    const Value sums = to.add("scatter_add", {zeros, first, all}, {{"axis", int64_t{0}}});
    const Value none = b.broadcast(to.scalar(i32, -1), {rows});
    const Value slots = to.add("scatter_rows", {none, flat, first});
    compact_[i] = sums;
    return to.add("gather", {sums, slots}, {{"axis", int64_t{0}}});
  }

  /// An expression of a sparse gradient, which is 0 where the gradient is 0, over the rows that have one;
  /// else invalid.
  Value over_rows(Value value) {
    const int i = value.node;
    if (const auto at = compact_.find(i); at != compact_.end()) return at->second;
    const Node& node = graph_.node(i);
    Graph& to = rewrite_.graph();
    if (node.op->keeps_zero && node.op->keeps_zero(node)) {
      const Value x = over_rows(node.operands[0]);
      return x.valid() ? compact_[i] = to.add(*node.op, {x}, node.attributes) : Value{};
    }
    if (node.op->is(ScalarOp::mul)) {
      const Value x = over_rows(node.operands[0]), y = over_rows(node.operands[1]);
      if (x.valid() && y.valid() && source_of(node.operands[0]) == source_of(node.operands[1]))
        return compact_[i] = to.add(*node.op, {x, y});
    }
    return {};
  }

  /// The scatter_add that an expression of over_rows() is made from.
  int source_of(Value value) const {
    while (!ops::row_sum(graph_, value)) value = graph_.node(value).operands[0];
    return value.node;
  }

  /// A sum over all of a sparse gradient (norms) is one over its rows; the order of the terms differs.
  Value sum_of_rows(int i) {
    const Node& node = graph_.node(i);
    if (exact_ || !node.op->is(Reduction::sum)) return {};
    const Shape& shape = graph_.type(node.operands[0]).shape;
    const size_t axes = node.attributes.ints("axes").size();
    if (axes != 0 && axes != shape.size()) return {};
    const Value rows = over_rows(node.operands[0]);
    return rows.valid() ? rewrite_.graph().add(*node.op, {rows}, node.attributes) : Value{};
  }

  const Graph& graph_;
  bool exact_;
  Rewriter rewrite_;
  std::vector<std::vector<int>> users_;
  std::map<int, Value> compact_;  // old node → value over the rows with a gradient, in the new graph
};

}  // namespace

// Gradients of large tables stay rows.
static Graph keep_gradients_sparse(const Graph& graph, const PassContext& context) {
  if (!context.target.fuses) return graph;
  return SparseGradients(graph, context.exact).run();
}

MILLRACE_PASS(sparse){.name = "sparse",
                      .doc = "gradients of large tables stay rows",
                      .place = 160,
                      .run = keep_gradients_sparse};

}  // namespace millrace
