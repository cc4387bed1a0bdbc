// What a Tensor refers to: one step of a computation that may or may not have happened.
#pragma once

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include <millrace/operator.h>
#include <millrace/tensor.h>

namespace millrace {

/// A value (`values` set), an operation (`op` set), or a symbol (neither). Once computed, an operation
/// becomes a value and lets its operands go.
struct TensorNode : std::enable_shared_from_this<TensorNode> {
  const Operator* op = nullptr;
  std::vector<Tensor> operands;
  Attributes attributes;
  std::shared_ptr<const Graph> body;  // of control flow
  std::vector<Type> types;
  std::vector<Array> values;  // of the results, when known
  Origin origin;              // the layer, or file:line of the user's call
  std::source_location source;
  std::string name;     // of a symbol
  uint64_t number = 0;  // of an operation: how many were recorded up to it

  ~TensorNode();  // iterative: a long chain of operations must not exhaust the stack
  bool is_operation() const { return op != nullptr; }
  bool is_symbol() const { return !op && values.empty(); }
  bool is_constant() const;  // the operator `constant`: part of the graph's structure
  /// Makes an operation a value.
  void settle(std::vector<Array> results);
};

namespace trace {

/// "layers.0.conv1" while those layers run; empty outside.
const std::string& current_layer();

/// Names the operations of a scope: the layer's full name is the outer one's, a dot, and `name`.
class LayerScope {
 public:
  explicit LayerScope(const std::string& name);
  ~LayerScope();
  LayerScope(const LayerScope&) = delete;

 private:
  std::string outer_;
};

/// Where random operators take their key from while a graph is captured.
class RandomScope {
 public:
  explicit RandomScope(Tensor key);
  ~RandomScope();
  RandomScope(const RandomScope&) = delete;

 private:
  Tensor outer_;
  int64_t outer_stream_;
};

/// apply() for an operator that may carry a body.
std::vector<Tensor> record(const Operator& op, std::span<const Tensor> operands, Attributes attributes,
                           std::shared_ptr<const Graph> body, const std::source_location& where);

/// How many operations this process has recorded.
uint64_t recorded();

/// "demo.cpp:12"
std::string place(const std::source_location& where);

}  // namespace trace
}  // namespace millrace
