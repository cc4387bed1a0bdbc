// The gradient of a choice: the gradient of the branch that was run.
#pragma once

#include <span>
#include <vector>

#include <millrace/graph.h>

namespace millrace {

/// Emits a cond whose branches are the gradients of the branches; these compute again what they need of the
/// branch. Returns the gradients of the operands, invalid where none flows.
std::vector<Value> cond_gradient(Graph& graph, const Node& node, std::span<const Value> operands,
                                 std::span<const Value> result_gradients);

}  // namespace millrace
