// What passes compute of a model's weights, left to who reads it.
#pragma once

#include <optional>
#include <span>

#include <millrace/array.h>
#include <millrace/graph.h>

namespace millrace {

/// A node's only result, computed by the reference back end when it is first read: where an operand came late
/// (ir/late_array.h). It has a digest before, so that a graph's further sizes find what kernels packed of it.
/// Nullopt for any other node, and small results.
std::optional<Array> late_result(const Graph& graph, const Node& node, std::span<const Array> operands);

}  // namespace millrace
