#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <vector>

#include <millrace/operator.h>

#include "base/format.h"
#include "ops/build.h"
#include "ops/matmul.h"
#include "passes/pass.h"

namespace millrace {
namespace {

// More would only be one more measurement.
constexpr size_t kMostSiblings = 8;

/// Products of one matrix with several others: all on the left of them, or all on the right.
struct Siblings {
  bool common_left;
  bool transpose_a, transpose_b;
  std::vector<int> products;  // nodes, in order

  Value multiply(Graph& to, Value common, Value mine) const {
    const Value left = common_left ? common : mine, right = common_left ? mine : common;
    return ops::Build(to).matmul(left, right, transpose_a, transpose_b);
  }
  int own() const { return common_left ? 1 : 0; }  // the operand that each has of its own
  /// The dimension of that operand which becomes one of the result.
  int own_axis() const { return common_left ? (transpose_b ? 0 : 1) : (transpose_a ? 1 : 0); }
};

/// One product with all that siblings have of their own (or with one value that is all of it), and of its
/// result each one's part, of so many rows or columns.
std::vector<Value> joined(Graph& to, const Siblings& siblings, Value common, const std::vector<Value>& own,
                          const std::vector<int64_t>& sizes) {
  const Value all =
      own.size() == 1 ? own[0] : to.add("concat", own, {{"axis", int64_t{siblings.own_axis()}}});
  const Value product = siblings.multiply(to, common, all);
  std::vector<int64_t> starts{0, 0}, ends = to.type(product).shape.sizes();
  const int axis = siblings.common_left ? 1 : 0;
  std::vector<Value> parts;
  for (const int64_t size : sizes) {
    ends[axis] = starts[axis] + size;
    parts.push_back(to.add("slice", {product}, {{"starts", starts}, {"ends", ends}}));
    starts[axis] = ends[axis];
  }
  return parts;
}

/// The part of their names that layers share, in whole words: "blocks.0" of "blocks.0.query" and
/// "blocks.0.key".
std::string common_layer(const std::string& a, const std::string& b) {
  const auto [at_a, at_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (at_a == a.end() && at_b == b.end()) return a;
  const size_t dot = std::string(a.begin(), at_a).rfind('.');
  return dot == std::string::npos ? a : a.substr(0, dot);
}

class Joiner {
 public:
  Joiner(const Graph& graph, const PassContext& context)
      : graph_(graph), context_(context), rewrite_(graph), group_(graph.size(), -1) {}

  Graph run() {
    find(true);
    find(false);
    if (groups_.empty()) return graph_;
    rewrite_.copy_inputs();
    for (int i = 0; i < graph_.size(); ++i) emit(i);
    const bool constants = std::any_of(groups_.begin(), groups_.end(),
                                       [&](const Siblings& siblings) { return is_constant(siblings); });
    return constants ? fold_constants(rewrite_.finish(), context_) : rewrite_.finish();
  }

 private:
  void find(bool common_left) {
    std::map<std::tuple<Value, bool, bool>, Siblings> found;
    for (int i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.node(i);
      const auto product = ops::matmul_of(node);
      if (!product || node.types[0].shape.rank() != 2 || group_[i] >= 0) continue;
      const auto [ta, tb] = *product;
      Siblings& siblings = found[{node.operands[common_left ? 0 : 1], ta, tb}];
      siblings.common_left = common_left;
      siblings.transpose_a = ta;
      siblings.transpose_b = tb;
      // What the first can wait for only by waiting for another is no sibling.
      const int first = siblings.products.empty() ? i : siblings.products.front();
      if (siblings.products.size() < kMostSiblings && is_near(node.operands[siblings.own()], first))
        siblings.products.push_back(i);
    }
    for (auto& entry : found) {
      Siblings& siblings = entry.second;
      if (siblings.products.size() < 2 || !pays(siblings)) continue;
      for (const int i : siblings.products) group_[i] = static_cast<int>(groups_.size());
      groups_.push_back(std::move(siblings));
    }
  }

  /// Whether a value is there before node `at`, or takes only casts and movements of what is.
  bool is_near(Value value, int at) const {
    while (value.node >= at) {
      const Node& node = graph_.node(value);
      const OpClass kind = node.op->op_class;
      if (graph_.is_input(value) || graph_.constant_value(value)) return true;
      if (node.operands.size() != 1 ||
          (kind != OpClass::elementwise && kind != OpClass::movement && kind != OpClass::view))
        return false;
      value = node.operands[0];
    }
    return true;
  }

  Value own(const Siblings& siblings, int product) const {
    return graph_.node(product).operands[siblings.own()];
  }
  Value common(const Siblings& siblings) const {
    return graph_.node(siblings.products.front()).operands[1 - siblings.own()];
  }
  std::vector<int64_t> sizes(const Siblings& siblings) const {
    std::vector<int64_t> all;
    for (const int i : siblings.products)
      all.push_back(graph_.type(own(siblings, i)).shape[siblings.own_axis()].size());
    return all;
  }
  /// Whether what would be joined is there before any run.
  bool is_constant(const Siblings& siblings) const {
    return std::all_of(siblings.products.begin(), siblings.products.end(),
                       [&](int i) { return graph_.constant_value(own(siblings, i)); });
  }

  /// Both forms are compared as graphs of their own, each result read once, as in a step.
  bool pays(const Siblings& siblings) const {
    std::string problem =
        fmt::format("join{} {} of {}{}{}:", is_constant(siblings) ? " constants" : "",
                    siblings.common_left ? "right" : "left", graph_.type(common(siblings)).str(),
                    siblings.transpose_a ? " transpose_a" : "", siblings.transpose_b ? " transpose_b" : "");
    for (const int i : siblings.products) problem += " " + graph_.type(own(siblings, i)).str();
    return context_.faster(problem, {"as it is", form(siblings, false)}, {kJoined, form(siblings, true)});
  }

  Graph form(const Siblings& siblings, bool join) const {
    Graph graph;
    const Value shared = graph.input("common", graph_.type(common(siblings)));
    std::vector<Value> own_values, results;
    if (join && is_constant(siblings)) {
      Type all = graph_.type(own(siblings, siblings.products.front()));
      const std::vector<int64_t> each = sizes(siblings);
      all.shape[siblings.own_axis()] = Dim(std::accumulate(each.begin(), each.end(), int64_t{0}));
      own_values = {graph.input("own", all)};
    } else {
      for (const int i : siblings.products)
        own_values.push_back(
            graph.input(fmt::format("own{}", own_values.size()), graph_.type(own(siblings, i))));
    }
    if (join)
      results = joined(graph, siblings, shared, own_values, sizes(siblings));
    else
      for (const Value one : own_values) results.push_back(siblings.multiply(graph, shared, one));
    for (Value& result : results) result = graph.add("relu", {result});
    graph.set_outputs(std::move(results));
    return graph;
  }

  /// Copies node i, and before it what it reads.
  void emit(int i) {
    if (rewrite_.has({i, 0})) return;
    if (group_[i] >= 0) {
      emit_joined(groups_[group_[i]]);
      return;
    }
    for (const Value& operand : graph_.node(i).operands) emit(operand.node);
    rewrite_.copy(i);
  }

  void emit_joined(const Siblings& siblings) {
    const Origin& first = graph_.node(siblings.products.front()).origin;
    std::string layer = first.layer.str();
    std::vector<Value> parts;
    emit(common(siblings).node);
    for (const int i : siblings.products) {
      layer = common_layer(layer, graph_.node(i).origin.layer.str());
      emit(own(siblings, i).node);
      parts.push_back(rewrite_[own(siblings, i)]);
    }
    rewrite_.graph().set_origin({layer, first.phase});
    parts = joined(rewrite_.graph(), siblings, rewrite_[common(siblings)], parts, sizes(siblings));
    for (size_t k = 0; k < parts.size(); ++k) rewrite_.set({siblings.products[k], 0}, parts[k]);
  }

  const Graph& graph_;
  const PassContext& context_;
  Rewriter rewrite_;
  std::vector<Siblings> groups_;
  std::vector<int> group_;  // of each product that is joined with others
};

}  // namespace

// Products that share an operand become one, of which each takes its part (queries, keys and values of
// attention), where that is measured to be faster. A larger product may sum in another order.
static Graph join_products(const Graph& graph, const PassContext& context) {
  if (context.exact || !context.faster || context.in_loop) return graph;
  return Joiner(graph, context).run();
}

MILLRACE_PASS(join_products){
    .name = "join-products",
    .doc = "products that share an operand become one, where that is measured to be faster",
    .place = 190,
    .run = join_products};

}  // namespace millrace
