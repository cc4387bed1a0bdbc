// cond: a choice in the graph.
#pragma once

#include <memory>
#include <vector>

#include <millrace/graph.h>

namespace millrace::ops {

/// The body that a cond carries: both branches, which take the same operands, over one set of inputs. Its
/// outputs are what the first gives, then what the other gives.
Graph join_branches(const Graph& then, const Graph& otherwise);
/// The first branch, or the other, of such a body, with all of its inputs.
Graph branch_of(const Graph& body, bool first);

/// Appends a cond; returns its first result. TypeError when branches and operands do not fit.
Value add_cond(Graph& graph, Value condition, const std::vector<Value>& operands,
               std::shared_ptr<const Graph> body);

}  // namespace millrace::ops
