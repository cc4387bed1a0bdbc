// One node by itself.
#pragma once

#include <millrace/graph.h>

namespace millrace {

/// What a node computes, as a graph: its inputs x0, x1 … are the node's operands, its outputs all results.
/// `graph`: where the types of the operands are; the node need not stand in it.
Graph alone(const Graph& graph, const Node& node);

}  // namespace millrace
