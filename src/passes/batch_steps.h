// Values of a loop's body for all steps at once.
#pragma once

#include <map>
#include <vector>

#include <millrace/graph.h>

namespace millrace {

/// Emits body nodes into another graph once for all steps: a value that differs from step to step is there as
/// a stack, with the steps as dimension 0; one that does not is there as it is.
class StepBatcher {
 public:
  /// `stacked[i]`: the results of body node i differ from step to step.
  StepBatcher(const Graph& body, std::vector<char> stacked, int64_t length, Graph& into)
      : body_(body), stacked_(std::move(stacked)), length_(length), to_(into) {}

  /// Whether a node has a form for all steps at once (its operands aside).
  static bool can_batch(const Graph& body, const Node& node, const std::vector<char>& stacked);

  /// Gives the value in `to` that stands for a body value.
  void set(Value body_value, Value outer) { map_[body_value] = outer; }
  bool has(Value body_value) const { return map_.contains(body_value); }
  /// Emits what is missing.
  Value emit(Value body_value);
  /// The sum over all steps of a stacked body value. A product of two stacks becomes one product over steps
  /// and rows.
  Value sum_over_steps(Value body_value);

 private:
  Value emit_node(int index);
  /// An operand as a stack.
  Value stack(Value body_value);
  Value by_rule(const Node& node);
  Value reduction(const Node& node);
  bool stacked(Value value) const { return stacked_[value.node] != 0; }
  bool is_product_over_steps(const Node& node) const;
  bool is_rounded_product(Value body_value) const;

  const Graph& body_;
  std::vector<char> stacked_;
  int64_t length_;
  Graph& to_;
  std::map<Value, Value> map_;
};

}  // namespace millrace
