// Parts of the bodies of loops and branches.
#pragma once

#include <span>
#include <vector>

#include <millrace/graph.h>

namespace millrace::ops {

/// Adds inputs x0, x1 … of these types.
std::vector<Value> add_inputs(Graph& graph, std::span<const Type> types);

/// Which nodes the values need, themselves included.
std::vector<char> needed_by(const Graph& graph, const std::vector<Value>& values);

/// Which nodes depend on the values, their own included.
std::vector<char> reached_from(const Graph& graph, std::span<const Value> values);

/// The part of a body that `outputs` (values of it) need, with only the inputs numbered in `inputs`, in that
/// order; the outputs must need no other.
Graph part_of_body(const Graph& body, const std::vector<int>& inputs, const std::vector<Value>& outputs);

}  // namespace millrace::ops
