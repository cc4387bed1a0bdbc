// A graph as part of a computation that is being recorded.
#pragma once

#include <span>
#include <vector>

#include <millrace/graph.h>
#include <millrace/tensor.h>

namespace millrace::trace {

/// Records the operations of a graph with these tensors as its inputs; the tensors of its outputs. Named
/// dimensions of its inputs are what the tensors have there, a number or the same name. Random operators draw
/// as others of the computation do (next_random_key()), whatever key and stream the graph gives them.
/// TypeError when the tensors are not those of its inputs.
std::vector<Tensor> inline_graph(const Graph& graph, std::span<const Tensor> inputs);

}  // namespace millrace::trace
