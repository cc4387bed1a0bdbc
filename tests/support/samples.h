// The samples of operators made runnable: graphs, inputs, gradient checks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <millrace/array.h>
#include <millrace/graph.h>
#include <millrace/operator.h>

namespace millrace {

/// Operand values of a sample: floats from [low, high), integers from [int_low, int_high], fixed values where
/// the sample gives them. The same for the same seed.
std::vector<Array> make_inputs(const Operator& op, const Sample& sample, uint64_t seed = 1);

/// A graph of one node; its outputs are the node's results.
Graph make_graph(const Operator& op, const Sample& sample);

/// The same with one output, `result`: the first, or of control flow all, one behind the other as f32.
/// Without `stacks`: of a while_loop only what it carries.
Graph make_graph_of_one(const Operator& op, const Sample& sample, bool stacks = true);

/// "pad(f32[3, 4]) {low=[1, 0], …} note", for messages.
std::string describe(const Operator& op, const Sample& sample);

/// The sample with every float dtype replaced by f64.
Sample in_doubles(const Sample& sample);

/// Compares gradients() of a random projection of the results with central differences in fp64, along random
/// directions and single elements, with respect to each float operand. `order` 2 compares the gradient of the
/// gradient. Returns what differs, or nothing.
std::optional<std::string> check_gradient(const Operator& op, const Sample& sample, int order = 1);

}  // namespace millrace
