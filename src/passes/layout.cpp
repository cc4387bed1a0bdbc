#include "passes/layout.h"

#include <algorithm>
#include <map>
#include <optional>

#include <millrace/operator.h>

#include "target/provider.h"

namespace millrace {
namespace {

/// Whether two layouts place every element of `shape` alike (dimensions of size 1 do not count).
bool same_placement(const Shape& shape, const Layout& a, const Layout& b) {
  const std::vector<int64_t> sa = strides_of(shape, a), sb = strides_of(shape, b);
  for (int d = 0; d < shape.rank(); ++d)
    if (!(shape[d] == 1) && sa[d] != sb[d]) return false;
  return true;
}

/// The layout of a transpose's result that lies in memory as its operand.
Layout transposed(const Layout& operand, const std::vector<int64_t>& permutation) {
  std::vector<int> inverse(permutation.size());
  for (size_t d = 0; d < permutation.size(); ++d)
    inverse[static_cast<size_t>(permutation[d])] = static_cast<int>(d);
  Layout result;
  for (size_t k = 0; k < permutation.size(); ++k) result.push_back(inverse[operand.empty() ? k : operand[k]]);
  return std::is_sorted(result.begin(), result.end()) ? Layout{} : result;
}

/// The permutation of a node that only reorders axes: a transpose, also as the only operator of a fused
/// group.
std::optional<std::vector<int64_t>> pure_transpose(const Node& node) {
  if (node.op->permutation) return node.op->permutation(node);
  if (node.op->op_class != OpClass::group || node.body->outputs().size() != 1) return std::nullopt;
  const Node& only = node.body->node(node.body->outputs()[0]);
  if (!only.op->permutation || !node.body->is_input(only.operands[0])) return std::nullopt;
  return only.op->permutation(only);
}

class LayoutChooser {
 public:
  LayoutChooser(const Graph& graph, const Target& target) : graph_(graph), target_(target), rewrite_(graph) {}

  LaidOutGraph run() {
    collect_wishes();
    rewrite_.copy_inputs();
    sync();
    for (int i = 0; i < graph_.size(); ++i)
      if (!rewrite_.has({i, 0})) lay_out(i);
    std::vector<Value> outputs;
    for (const Value& output : graph_.outputs()) outputs.push_back(in_layout(rewrite_[output], {}));
    rewrite_.graph().set_outputs(outputs, graph_.output_names());
    return {std::move(rewrite_.graph()), std::move(layouts_)};
  }

 private:
  void collect_wishes() {
    wishes_.resize(graph_.size());
    for (int i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.node(i);
      LayoutWish& wish = wishes_[i];
      wish.operands.resize(node.operands.size());
      wish.results.resize(node.types.size());
      if (node.op->op_class == OpClass::view) {
        wish.operands[0] = wish.results[0] = Layout{};  // the others are not read
      } else if (node.op->is_given() || node.op->runs_body()) {
        for (auto& operand : wish.operands) operand = Layout{};
        for (auto& result : wish.results) result = Layout{};
      } else if (const Provider* provider = target_.taker(graph_, node)) {
        wish = provider->layouts(graph_, node);
      }
    }
    // What the readers of a value would like, for producers without a wish of their own.
    for (int i = graph_.size() - 1; i >= 0; --i) {
      const Node& node = graph_.node(i);
      const Layout* mine = nullptr;
      if (!wishes_[i].results.empty() && !wishes_[i].results[0]) {
        const auto it = wanted_.find({i, 0});
        if (it != wanted_.end()) mine = &it->second;
      }
      if (const auto permutation = free_transpose(i)) {
        // The operand's order that gives the result the order its readers want.
        Layout order;
        for (size_t k = 0; k < permutation->size(); ++k)
          order.push_back(static_cast<int>(
              (*permutation)[mine && mine->size() == permutation->size() ? static_cast<size_t>((*mine)[k])
                                                                         : k]));
        wanted_.try_emplace(node.operands[0], std::move(order));
        continue;
      }
      for (size_t k = 0; k < node.operands.size(); ++k) {
        const auto& wish = wishes_[i].operands[k];
        if (wish && !wish->empty())
          wanted_.try_emplace(node.operands[k], *wish);
        else if (!wish && mine && graph_.type(node.operands[k]).shape == node.types[0].shape)
          wanted_.try_emplace(node.operands[k], *mine);
      }
    }
  }

  /// The permutation of a transpose whose provider takes any layout.
  std::optional<std::vector<int64_t>> free_transpose(int i) const {
    const LayoutWish& wish = wishes_[i];
    if (wish.operands.size() != 1 || wish.operands[0] || wish.results[0]) return std::nullopt;
    return pure_transpose(graph_.node(i));
  }

  /// Layouts for nodes that were just added: row-major unless set.
  void sync() {
    while (static_cast<int>(layouts_.size()) < rewrite_.graph().size())
      layouts_.emplace_back(rewrite_.graph().node(static_cast<int>(layouts_.size())).types.size());
  }

  Value in_layout(Value value, const Layout& layout) {
    const Shape& shape = rewrite_.graph().type(value).shape;
    if (same_placement(shape, layouts_[value.node][value.output], layout)) return value;
    const auto [it, fresh] = copies_.try_emplace({value, layout});
    if (fresh) {
      it->second = rewrite_.graph().add("copy", {value});
      sync();
      layouts_[it->second.node][0] = layout;
    }
    return it->second;
  }

  /// The layout of a result whose producer takes any: that of the largest operand of its shape, else what
  /// readers want.
  Layout follow(int i, const Shape& shape, Value result) {
    const Node& node = graph_.node(i);
    if (shape.rank() < 3) return {};
    for (const Value& operand : node.operands) {
      const Value mapped = rewrite_[operand];
      const Layout& layout = layouts_[mapped.node][mapped.output];
      if (!layout.empty() && static_cast<int>(layout.size()) == shape.rank()) return layout;
    }
    const auto it = wanted_.find(result);
    if (it != wanted_.end() && static_cast<int>(it->second.size()) == shape.rank()) return it->second;
    return {};
  }

  void lay_out(int i) {
    const Node& node = graph_.node(i);
    const LayoutWish& wish = wishes_[i];
    std::vector<Layout> results;
    if (const auto permutation = free_transpose(i)) {
      const Value operand = rewrite_[node.operands[0]];
      results.push_back(transposed(layouts_[operand.node][operand.output], *permutation));
    }
    for (size_t r = results.size(); r < node.types.size(); ++r)
      results.push_back(wish.results[r] ? *wish.results[r]
                                        : follow(i, node.types[r].shape, {i, static_cast<int32_t>(r)}));
    rewrite_.graph().set_origin(node.origin);
    std::vector<Value> operands = rewrite_.mapped(node.operands);
    for (size_t k = 0; k < operands.size(); ++k)
      if (wish.operands[k]) operands[k] = in_layout(operands[k], *wish.operands[k]);
    const Value added = rewrite_.graph().add_copy(graph_, i, std::move(operands));
    rewrite_.set_all(i, added);
    sync();
    for (size_t r = 0; r < results.size(); ++r) layouts_[added.node][r] = results[r];
  }

  const Graph& graph_;
  const Target& target_;
  Rewriter rewrite_;
  std::vector<LayoutWish> wishes_;
  std::map<Value, Layout> wanted_;
  std::vector<std::vector<Layout>> layouts_;
  std::map<std::pair<Value, Layout>, Value> copies_;
};

}  // namespace

bool is_view(const LaidOutGraph& graph, int node) {
  const Node& n = graph.graph.node(node);
  if (n.op->op_class == OpClass::view) return true;
  const auto permutation = pure_transpose(n);
  if (!permutation) return false;
  const Layout as_operand = transposed(graph.layout(n.operands[0]), *permutation);
  return same_placement(n.types[0].shape, as_operand, graph.layouts[node][0]);
}

LaidOutGraph choose_layouts(const Graph& graph, const Target& target) {
  return LayoutChooser(graph, target).run();
}

}  // namespace millrace
