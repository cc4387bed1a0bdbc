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

}  // namespace millrace
