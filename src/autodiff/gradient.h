// Reverse-mode differentiation, graph to graph.
#pragma once

#include <span>
#include <vector>

#include <millrace/graph.h>

namespace millrace {

/// Appends to `graph` the gradients of sum(outputs[i] * seeds[i]) with respect to `wrt`, and returns them;
/// where nothing flows the gradient is zeros of the value's type. Shapes must be static. The result is made
/// of ordinary operators, so it can be differentiated again. Throws TypeError when an operator on the way has
/// no gradient.
std::vector<Value> gradients(Graph& graph, std::span<const Value> outputs, std::span<const Value> seeds,
                             std::span<const Value> wrt);

/// The same with respect to values that are taken as independent of each other, as the inputs of a body are;
/// invalid for those that are no floats, and where one stands again: its gradient is of all its places.
std::vector<Value> partial_gradients(Graph& graph, std::span<const Value> outputs,
                                     std::span<const Value> seeds, std::span<const Value> wrt);

/// The same as gradients() for one scalar `loss` with seed 1.
std::vector<Value> gradients(Graph& graph, Value loss, std::span<const Value> wrt);

// What gradients() asks of nodes with bodies, whose gradients are made of partial_gradients() of these. They
// append to `graph` and give one value for each operand, invalid where none flows.

/// Of a scan (scan_gradient.cpp): a scan over the same steps backwards, and before it the scan once more,
/// giving also what the backward one reads. The pass `scan` makes one scan of that and the original. Both are
/// ordinary scans, so they can be differentiated again.
std::vector<Value> scan_gradient(Graph& graph, const Node& node, std::span<const Value> operands,
                                 std::span<const Value> result_gradients);
/// Of a choice (cond_gradient.cpp): a cond whose branches are the gradients of the branches; these compute
/// again what they need of the branch.
std::vector<Value> cond_gradient(Graph& graph, const Node& node, std::span<const Value> operands,
                                 std::span<const Value> result_gradients);

}  // namespace millrace
