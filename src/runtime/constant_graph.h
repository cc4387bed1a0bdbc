// Graphs that need nothing to be run: what is computed while a model is read or compiled.
#pragma once

#include <vector>

#include <millrace/graph.h>

namespace millrace {

/// Operations, and elements that are computed on the way.
double work_of(const Graph& graph);

/// The outputs of a graph without inputs: by the reference back end, or where that would take long by a
/// program, which does not keep what lies between.
std::vector<Array> evaluate_constant_graph(const Graph& graph);

}  // namespace millrace
