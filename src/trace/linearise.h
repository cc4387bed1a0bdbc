// From lazy tensors to a graph.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <millrace/graph.h>

#include "trace/node.h"

namespace millrace::trace {

/// One result of a node, as a key.
using Slot = std::pair<const TensorNode*, int>;
Slot key_of(const Tensor& tensor);

/// The operations that some tensors still need, in a fixed order, and what they start from.
struct Linear {
  std::vector<TensorNode*> operations;  // operands before users
  std::vector<Tensor> leaves;           // values and symbols, in order of first use
  /// Operations (not constants) that something outside these operations refers to.
  std::vector<TensorNode*> shared;
};

/// Walks back from `outputs` to values and symbols.
/// Operations that were recorded up to `since` (but constants) are leaves, too.
Linear linearise(std::span<const Tensor> outputs, uint64_t since = 0);

/// Text that is equal exactly when two computations have the same operators, attributes, wiring, leaf types
/// and outputs; no addresses, no leaf values.
std::string structure(const Linear& linear, std::span<const Slot> outputs);

/// The computation as a graph: leaves in order as inputs, except those in `given`, which are values of
/// `graph` already.
std::map<Slot, Value> append(Graph& graph, const Linear& linear, std::map<Slot, Value> given = {});

/// A computation as a graph, and which of its values tensors are.
struct Captured {
  Graph graph;
  std::map<Slot, Value> values;

  Value value_of(const Tensor& tensor) const { return values.at(key_of(tensor)); }
  std::vector<Value> values_of(std::span<const Tensor> tensors) const;
};
/// The graph from `inputs` (symbols, in this order) to `outputs`; other concrete leaves become constants.
/// Throws TypeError when another symbol is reached. With `others` both become further inputs instead, and are
/// added to these. `since` as in linearise().
Captured capture(std::span<const Tensor> inputs, std::span<const Tensor> outputs,
                 std::vector<Tensor>* others = nullptr, uint64_t since = 0);

/// The other way: the outputs of a graph as tensors, its inputs replaced by `arguments`.
std::vector<Tensor> tensors_of(const Graph& graph, std::span<const Tensor> arguments,
                               const std::source_location& where);

}  // namespace millrace::trace
