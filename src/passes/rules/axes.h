// The axes of reductions and permutations. Shared by their rules.
#pragma once

#include <algorithm>
#include <vector>

#include <millrace/graph.h>

namespace millrace {

/// The axes that a reduction over an operand of such a rank names, each from 0 on.
inline std::vector<int64_t> axes_of(const Node& node, int rank) {
  std::vector<int64_t> axes = node.attributes.ints("axes");
  if (axes.empty())
    for (int d = 0; d < rank; ++d) axes.push_back(d);
  for (int64_t& axis : axes)
    if (axis < 0) axis += rank;
  return axes;
}

/// Whether a permutation, of two axes or more, exchanges the last two and nothing else.
inline bool swaps_last_two(std::vector<int64_t> permutation) {
  std::iter_swap(permutation.end() - 1, permutation.end() - 2);
  return std::is_sorted(permutation.begin(), permutation.end());
}

/// Whether `value` is a broadcast that made each of these axes from a size of 1 (or from nothing).
inline bool broadcast_along(const Graph& graph, Value value, const std::vector<int64_t>& axes) {
  const Node& node = graph.node(value);
  const Shape &from = graph.type(node.operands[0]).shape, &to = graph.type(value).shape;
  for (const int64_t axis : axes) {
    const int64_t own = axis - (to.rank() - from.rank());
    if (own >= 0 && !(from[static_cast<size_t>(own)] == 1)) return false;
  }
  return true;
}

/// The operand of a broadcast, with the shape that the reduction of it has: its own size, or 1, on every axis
/// that is kept. Then broadcast to the result's shape it is what stood there before the reduction.
Value unreduced(Graph& graph, Value broadcast, const std::vector<int64_t>& axes, const Shape& result);

}  // namespace millrace
