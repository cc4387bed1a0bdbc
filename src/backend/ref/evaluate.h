// The reference back end: every operator, plainly; the judge of all others.
#pragma once

#include <span>
#include <vector>

#include <millrace/array.h>
#include <millrace/graph.h>

namespace millrace::ref {

/// Evaluates a graph of static shapes node by node. Floats are computed in double and rounded to the dtype
/// after each operator; composites are evaluated through their bodies. Throws TypeError when inputs do not
/// fit.
std::vector<Array> evaluate(const Graph& graph, std::span<const Array> inputs);

/// Evaluates one primitive node (not input, constant or composite).
std::vector<Array> evaluate_node(const Graph& graph, const Node& node, std::span<const Array> operands);

}  // namespace millrace::ref
