// What is asked of the values of a graph.
#pragma once

#include <map>
#include <span>
#include <vector>

#include <millrace/graph.h>

namespace millrace {

/// Of each value.
std::vector<Type> types_of(const Graph& graph, std::span<const Value> values);

/// Of each node those that read a result of it, ascending, each once.
std::vector<std::vector<int>> users_of(const Graph& graph);

/// Maps all results of a node to `first` and those behind it, of another graph.
void map_results(std::map<Value, Value>& map, const Graph& graph, int index, Value first);

}  // namespace millrace
