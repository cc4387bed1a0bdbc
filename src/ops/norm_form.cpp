#include "ops/norm_form.h"

#include <millrace/operator.h>

#include "ops/filled.h"
#include "ops/is.h"

namespace millrace::ops {
namespace {

Value behind_broadcast(const Graph& graph, Value v) {
  while (graph.node(v).op->broadcasts) v = graph.node(v).operands[0];
  return v;
}

/// What `v` is the mean of along the last axis, which stays as 1; maybe broadcast.
std::optional<Value> mean_of(const Graph& graph, Value v) {
  const Node& mean = graph.node(behind_broadcast(graph, v));
  if (!mean.op->is(Reduction::mean) || !mean.attributes.flag("keep_dims")) return std::nullopt;
  const int64_t last = graph.type(mean.operands[0]).shape.rank() - 1;
  const std::vector<int64_t>& axes = mean.attributes.ints("axes");
  if (axes.size() != 1 || (axes[0] != last && axes[0] != -1)) return std::nullopt;
  return mean.operands[0];
}

std::optional<Value> squared(const Graph& graph, Value v) {
  const Node& n = graph.node(v);
  const bool itself = n.op->is(ScalarOp::mul) && n.operands[0] == n.operands[1];
  if (itself || is(n, "square")) return n.operands[0];
  if (n.op->is(ScalarOp::pow) && number_of(graph, n.operands[1]) == 2) return n.operands[0];
  return std::nullopt;
}

/// d and eps of mean(d²) + eps.
std::optional<std::pair<Value, double>> mean_square(const Graph& graph, Value v) {
  const Node& sum = graph.node(behind_broadcast(graph, v));
  if (!sum.op->is(ScalarOp::add)) return std::nullopt;
  for (int side = 0; side < 2; ++side) {
    const auto eps = number_of(graph, sum.operands[1 - side]);
    const auto mean = eps ? mean_of(graph, sum.operands[side]) : std::nullopt;
    if (const auto d = mean ? squared(graph, *mean) : std::nullopt) return std::pair(*d, *eps);
  }
  return std::nullopt;
}

/// The same of `v` = sqrt(mean(d²) + eps), or of one over that.
std::optional<std::pair<Value, double>> root(const Graph& graph, Value v, bool inverse) {
  const Node* n = &graph.node(behind_broadcast(graph, v));
  if (inverse && is(*n, "rsqrt")) return mean_square(graph, n->operands[0]);
  if (inverse) {
    if (!is(*n, "reciprocal")) return std::nullopt;
    n = &graph.node(behind_broadcast(graph, n->operands[0]));
  }
  return n->op->is(ScalarOp::sqrt) ? mean_square(graph, n->operands[0]) : std::nullopt;
}

}  // namespace

std::optional<CentredNorm> centred_norm(const Graph& graph, Value value) {
  const Node& n = graph.node(value);
  const bool divides = n.op->is(ScalarOp::div);
  if (!divides && !n.op->is(ScalarOp::mul)) return std::nullopt;
  for (int side = 0; side < (divides ? 1 : 2); ++side) {
    const Value d = n.operands[side];
    const auto found = root(graph, n.operands[1 - side], !divides);
    if (!found || found->first != d || graph.type(d) != n.types[0] || !graph.node(d).op->is(ScalarOp::sub))
      continue;
    const Node& difference = graph.node(d);
    if (mean_of(graph, difference.operands[1]) == difference.operands[0])
      return CentredNorm{difference.operands[0], found->second};
  }
  return std::nullopt;
}

}  // namespace millrace::ops
