// What passes that rewrite loops share.
#pragma once

#include <functional>

#include <millrace/graph.h>

namespace millrace {

/// The graph with `change` applied to the body of every loop and to each branch, inner ones first.
Graph with_bodies(Graph graph, const std::function<Graph(const Graph&)>& change);

}  // namespace millrace
