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

/// Of a reduction of `operand`: what all elements are that it makes one of, in the result's shape, where
/// `operand` is a broadcast that made each of the reduced axes from a size of 1 (or from nothing); invalid
/// where it is none, or where there are no elements.
Value reduced_alike(Graph& graph, const Node& reduction, Value operand);

}  // namespace millrace
