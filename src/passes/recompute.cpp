#include <algorithm>
#include <map>
#include <vector>

#include <millrace/operator.h>

#include "base/contains.h"
#include "passes/pass.h"

namespace millrace {
namespace {

// What is computed again together must cost less than this share of the forward pass: chains over many layers
// would be alive all at once, and save nothing.
constexpr double kLongestChain = 1.0 / 16;
// Smaller values are not worth a thought.
constexpr int64_t kLeastSavedBytes = 1 << 16;

/// Rough nanoseconds: products by their FLOPs, everything else by the bytes it writes (or reads, when it
/// reduces).
double cost_of(const Graph& graph, const Node& node) {
  if (node.op->op_class == OpClass::view || node.op->is_given()) return 0;
  double bytes = 0;
  for (const Type& type : node.types) bytes += static_cast<double>(type.bytes());
  if (node.op->op_class == OpClass::reduction)
    bytes = static_cast<double>(graph.type(node.operands[0]).bytes());
  const double flops = node.op->flops ? node.op->flops(graph, node) : 0;
  return bytes / 50 + flops / 400;
}

class Recomputer {
 public:
  Recomputer(const Graph& graph, int64_t wanted)
      : graph_(graph),
        saved_(graph.size(), 0),
        dropped_(graph.size(), 0),
        kept_(graph.size(), 0),
        cost_(graph.size()),
        rewrite_(graph) {
    for (int i = 0; i < graph.size(); ++i) {
      cost_[i] = cost_of(graph, graph.node(i));
      if (forward(i)) forward_cost_ += cost_[i];
    }
    find_saved();
    drop(wanted);
  }

  Graph run() {
    if (!contains(dropped_, 1)) return graph_;
    rewrite_.go_through([&](int i) {
      const Node& node = graph_.node(i);
      const bool reads_dropped =
          !forward(i) && std::any_of(node.operands.begin(), node.operands.end(),
                                     [&](const Value& v) { return forward(v.node) && again(v.node); });
      if (!reads_dropped) return false;
      std::vector<Value> operands;
      for (const Value& operand : node.operands) operands.push_back(recomputed(operand));
      rewrite_.set_all(i, append(i, std::move(operands), node.origin));
      return true;
    });
    return rewrite_.finish();
  }

 private:
  bool given(int i) const { return graph_.node(i).op->is_given(); }
  bool view(int i) const { return graph_.node(i).op->op_class == OpClass::view; }
  bool forward(int i) const { return !given(i) && graph_.node(i).origin.phase == Phase::forward; }

  /// The node whose memory a node's result lies in.
  int root(int i) const {
    while (view(i)) i = graph_.node(i).operands[0].node;
    return i;
  }
  int64_t bytes(int i) const {
    int64_t sum = 0;
    for (const Type& type : graph_.node(i).types) sum += type.bytes();
    return sum;
  }
  /// Whether node i, or the one it is a view of, is computed again for the backward pass.
  bool again(int i) const { return dropped_[root(i)] != 0; }

  /// Forward nodes whose results the backward pass reads.
  void find_saved() {
    for (int i = 0; i < graph_.size(); ++i) {
      if (forward(i) || given(i)) continue;
      for (const Value& operand : graph_.node(i).operands) {
        const int r = root(operand.node);
        if (!forward(r)) continue;
        saved_[r] = 1;
        // The gradient of max looks for the element that was the largest: to the last bit.
        if (graph_.node(i).op->errors == ErrorGrowth::decisive) kept_[r] = 1;
      }
    }
    // An output stays in any case.
    for (const Value& output : graph_.outputs()) kept_[root(output.node)] = 1;
  }

  /// Nodes that must run again for node i when it is not kept: back to what is.
  void chain(int i, std::vector<int>& nodes, std::vector<char>& seen) const {
    if (seen[i]) return;
    seen[i] = 1;
    nodes.push_back(i);
    for (const Value& operand : graph_.node(i).operands) {
      const int r = root(operand.node);
      if (forward(r) && !saved_[r]) chain(r, nodes, seen);
    }
  }

  void drop(int64_t wanted) {
    int64_t total = 0;
    while (total < wanted) {
      int best = -1;
      double best_rate = 0;
      std::vector<int> best_chain;
      for (int i = 0; i < graph_.size(); ++i) {
        if (!saved_[i] || bytes(i) < kLeastSavedBytes || graph_.node(i).op->repeat == Repeat::never ||
            kept_[i])
          continue;
        std::vector<int> nodes;
        std::vector<char> seen(graph_.size(), 0);
        chain(i, nodes, seen);
        double length = 0, added = 0;
        for (const int n : nodes) {
          length += cost_[n];
          if (!dropped_[n]) added += cost_[n];
        }
        if (length > kLongestChain * forward_cost_ || lengthens(i, length)) continue;
        const double rate = static_cast<double>(bytes(i)) / (added + 100);
        if (rate > best_rate) {
          best_rate = rate;
          best = i;
          best_chain = std::move(nodes);
        }
      }
      if (best < 0) return;
      total += bytes(best);
      saved_[best] = 0;
      for (const int n : best_chain) dropped_[n] = 1;
    }
  }

  /// Whether giving up node i would make a chain that begins at it too long.
  bool lengthens(int i, double length) const {
    // Chains of what is computed again from i: everything dropped that reads it directly or through others.
    double behind = 0;
    std::vector<char> reached(graph_.size(), 0);
    reached[i] = 1;
    for (int n = i + 1; n < graph_.size(); ++n) {
      if (!forward(n) || !(dropped_[n] || view(n))) continue;
      const auto& operands = graph_.node(n).operands;
      if (std::any_of(operands.begin(), operands.end(),
                      [&](const Value& v) { return reached[v.node] != 0; })) {
        reached[n] = 1;
        behind += cost_[n];
      }
    }
    return length + behind > kLongestChain * forward_cost_;
  }

  Value append(int i, std::vector<Value> operands, Origin origin) {
    Graph& to = rewrite_.graph();
    to.set_origin(std::move(origin));
    return to.add_copy(graph_, i, std::move(operands));
  }

  /// The value as the backward pass reads it: computed again when it was given up.
  Value recomputed(Value value) {
    if (!forward(value.node) || !again(value.node)) return rewrite_[value];
    if (const auto it = clones_.find(value.node); it != clones_.end()) return {it->second, value.output};
    const Node& node = graph_.node(value.node);
    std::vector<Value> operands;
    for (const Value& operand : node.operands) operands.push_back(recomputed(operand));
    const Value clone = append(value.node, std::move(operands), node.origin.repeated(Phase::backward));
    clones_[value.node] = clone.node;
    return {clone.node, value.output};
  }

  const Graph& graph_;
  // Nodes that the backward pass reads from memory; that it computes again; that must not be given up.
  std::vector<char> saved_, dropped_, kept_;
  std::vector<double> cost_;
  double forward_cost_ = 0;
  Rewriter rewrite_;
  std::map<int, int> clones_;
};

}  // namespace

// Activations that the backward pass computes again instead of keeping them, those first that save most bytes
// for their time (greedily, each with the chain of nodes that leads to it from values that are kept; as in
// Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016, but value by value).
static Graph recompute(const Graph& graph, const PassContext& context) {
  if (context.drop_bytes <= 0) return graph;
  return Recomputer(graph, context.drop_bytes).run();
}

MILLRACE_PASS(recompute){
    .name = "recompute",
    .doc = "activations that are computed again in the backward pass, where memory is short",
    .place = 210,
    .run = recompute};

}  // namespace millrace
