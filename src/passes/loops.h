// What passes that rewrite loops share.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <millrace/graph.h>

namespace millrace {

/// The graph with `change` applied to the body of every loop and to each branch, inner ones first.
Graph with_bodies(const Graph& graph, const std::function<Graph(const Graph&)>& change);

/// The part of a body that `outputs` (values of it) need, with only the inputs numbered in `inputs`, in that
/// order; the outputs must need no other.
std::shared_ptr<const Graph> part_of_body(const Graph& body, const std::vector<int>& inputs,
                                          const std::vector<Value>& outputs);

/// Which nodes the values need, themselves included.
std::vector<char> needed_by(const Graph& graph, const std::vector<Value>& values);

}  // namespace millrace
