// The gradient of a loop.
#pragma once

#include <span>
#include <vector>

#include <millrace/graph.h>

namespace millrace {

/// Appends to `graph` the gradient of a scan node, one value for each operand (invalid where none flows): a
/// scan over the same steps backwards, and before it the scan once more, giving also what the backward one
/// reads. The pass `scan` makes one scan of that and the original. Both are ordinary scans, so they can be
/// differentiated again.
std::vector<Value> scan_gradient(Graph& graph, const Node& node, std::span<const Value> operands,
                                 std::span<const Value> result_gradients);

}  // namespace millrace
