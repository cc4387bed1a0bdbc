// Chooses how values lie in memory.
#pragma once

#include <vector>

#include <millrace/graph.h>

#include "target/provider.h"

namespace millrace {

/// A graph and the layout of every value: layouts[node][result], empty for row-major.
struct LaidOutGraph {
  Graph graph;
  std::vector<std::vector<Layout>> layouts;
  const Layout& layout(Value value) const { return layouts[value.node][value.output]; }
};

/// Whether a node moves nothing: a reshape, or a transpose whose result lies as its operand does. Both share
/// memory.
bool is_view(const LaidOutGraph& graph, int node);

/// Gives every value the layout that the provider of its node wishes; element-wise groups follow their
/// operands, or their readers; a lone transpose only changes the layout. Where a reader needs another layout,
/// a `copy` is inserted. Inputs, outputs, constants and the operands and results of views are row-major.
LaidOutGraph choose_layouts(const Graph& graph, const Target& target);

}  // namespace millrace
