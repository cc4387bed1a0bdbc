#include <vector>

#include <millrace/operator.h>

#include "ops/matmul.h"
#include "passes/pass.h"

namespace millrace {
namespace {

/// One matrix of a chain: how it is stored, and its size as it stands in the chain.
struct Factor {
  Value value;  // of the new graph
  bool transposed;
  double rows, columns;
  bool constant;
};

/// The best way to multiply the factors [first, last].
struct Best {
  double cost = 0;
  size_t split = 0;  // the left side ends there
  bool constant = false;
};

// Operations that storing an element of a result and reading it again are worth.
constexpr double kElement = 16;
// Fewer savings are not worth another rounding.
constexpr double kWorthwhile = 0.9;

class Chains {
 public:
  Chains(const Graph& graph, Rewriter& rewrite)
      : graph_(graph), rewrite_(rewrite), uses_(graph.use_counts()), inner_(uses_.size()) {
    for (int i = 0; i < graph.size(); ++i)
      if (ops::matmul_of(graph.node(i)))
        for (const Value& operand : graph.node(i).operands)
          inner_[operand.node] = uses_[operand.node] == 1 && ops::matmul_of(graph.node(operand)).has_value();
  }

  /// Whether the node is a product that is no part of a longer chain.
  bool is_whole(int i) const {
    return ops::matmul_of(graph_.node(i)) && !inner_[i] && graph_.node(i).types[0].shape.count() > 0;
  }

  /// The factors of the product `root` and the cost of multiplying them as written.
  std::vector<Factor> factors(int root, double& cost) const {
    std::vector<Factor> all;
    cost = 0;
    collect({root, 0}, false, true, all, cost);
    return all;
  }

 private:
  /// True when all sides are constant.
  bool collect(Value value, bool transposed, bool root, std::vector<Factor>& all, double& cost) const {
    const Node& node = graph_.node(value);
    const Shape& shape = graph_.type(value).shape;
    const int rank = shape.rank();
    const auto size = [&](int from_end) { return static_cast<double>(shape[rank - from_end].size()); };
    if (!root && !inner_[value.node]) {
      const Value mapped = rewrite_[value];
      const bool constant = rewrite_.graph().constant_value(mapped) != nullptr;
      all.push_back(
          {mapped, transposed, transposed ? size(1) : size(2), transposed ? size(2) : size(1), constant});
      return constant;
    }
    // (A·B)ᵀ = Bᵀ·Aᵀ
    const bool flags[] = {node.attributes.flag("transpose_a") != transposed,
                          node.attributes.flag("transpose_b") != transposed};
    bool constant = true;
    for (const int side : {transposed ? 1 : 0, transposed ? 0 : 1})
      constant = collect(node.operands[side], flags[side], false, all, cost) && constant;
    if (!constant) cost += node.op->flops(graph_, node) + kElement * static_cast<double>(shape.count());
    return constant;
  }

  const Graph& graph_;
  Rewriter& rewrite_;
  std::vector<int> uses_;
  std::vector<char> inner_;
};

/// Matrix-chain ordering by dynamic programming, for so many matrices in each factor; products of constants
/// are computed once, so they cost nothing.
std::vector<std::vector<Best>> order(const std::vector<Factor>& f, double matrices) {
  const size_t count = f.size();
  std::vector<std::vector<Best>> best(count, std::vector<Best>(count));
  for (size_t i = 0; i < count; ++i) best[i][i].constant = f[i].constant;
  for (size_t length = 1; length < count; ++length)
    for (size_t first = 0; first + length < count; ++first) {
      Best& here = best[first][first + length];
      here.constant = best[first][first].constant && best[first + 1][first + length].constant;
      here.cost = -1;
      for (size_t split = first; split < first + length; ++split) {
        const double product =
            matrices * f[first].rows * f[first + length].columns * (2 * f[split].columns + kElement);
        const double cost =
            best[first][split].cost + best[split + 1][first + length].cost + (here.constant ? 0 : product);
        if (here.cost < 0 || cost < here.cost) {
          here.cost = cost;
          here.split = split;
        }
      }
    }
  return best;
}

Value multiply(Graph& graph, const std::vector<Factor>& f, const std::vector<std::vector<Best>>& best,
               size_t first, size_t last) {
  const size_t split = best[first][last].split;
  const auto side = [&](size_t from, size_t to) {
    return from == to ? f[from].value : multiply(graph, f, best, from, to);
  };
  const Value left = side(first, split), right = side(split + 1, last);
  return graph.add("matmul", {left, right},
                   {{"transpose_a", split == first && f[first].transposed},
                    {"transpose_b", split + 1 == last && f[last].transposed}});
}

}  // namespace

// Chains of matrix products whose inner results are read by nothing else are multiplied in the order that
// takes the fewest operations (Cormen et al., "Introduction to Algorithms", matrix-chain multiplication).
// Results change as by another order of sums.
static Graph reassociate(const Graph& given, const PassContext& context) {
  if (context.exact) return given;
  const Graph graph = eliminate_dead(given, context);
  Rewriter rewrite(graph);
  const Chains chains(graph, rewrite);
  rewrite.go_through([&](int i) {
    if (!chains.is_whole(i)) return false;
    const Node& node = graph.node(i);
    double written = 0;
    const std::vector<Factor> factors = chains.factors(i, written);
    const double elements = factors.front().rows * factors.back().columns;
    const auto best = order(factors, static_cast<double>(node.types[0].shape.count()) / elements);
    const bool better = factors.size() > 2 && best[0].back().cost < kWorthwhile * written;
    if (!better) return false;
    rewrite.graph().set_origin(node.origin);
    rewrite.set({i, 0}, multiply(rewrite.graph(), factors, best, 0, factors.size() - 1));
    return true;
  });
  return rewrite.finish();
}

MILLRACE_PASS(reassociate){.name = "reassociate",
                           .doc = "chains of matrix products in the order that takes the fewest operations",
                           .place = 50,
                           .run = reassociate};

}  // namespace millrace
