// Algebraic rules: one file each, applied by the simplify pass.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <millrace/graph.h>

namespace millrace {

/// A rule looks at one node whose operands are already in the new graph, and may give a value that stands for its result.
struct Rule {
  std::string_view name;
  /// Results are the same bit for bit, but for the sign of a zero. Other rules change the order or number of roundings;
  /// exact programs (CompileOptions::exact) do without.
  bool exact;
  /// An invalid Value when the rule does not apply. Who else reads the operands is not known: a rule must pay even when
  /// they are computed for others too.
  Value (*apply)(Graph& graph, const Node& node, const std::vector<Value>& operands);
};

/// All rules, in the order they are tried; the first that applies wins.
std::span<const Rule> rules();

// One file each.
Value add_zero(Graph& graph, const Node& node, const std::vector<Value>& operands);
Value add_of_negative(Graph& graph, const Node& node, const std::vector<Value>& operands);
Value broadcast_of_broadcast(Graph& graph, const Node& node, const std::vector<Value>& operands);
Value divide_by_constant(Graph& graph, const Node& node, const std::vector<Value>& operands);
Value divide_by_power_of_two(Graph& graph, const Node& node, const std::vector<Value>& operands);
Value extreme_of_broadcast(Graph& graph, const Node& node, const std::vector<Value>& operands);
Value gather_of_cast(Graph& graph, const Node& node, const std::vector<Value>& operands);
Value log_of_softmax(Graph& graph, const Node& node, const std::vector<Value>& operands);
Value matmul_of_transpose(Graph& graph, const Node& node, const std::vector<Value>& operands);
Value multiply_by_one(Graph& graph, const Node& node, const std::vector<Value>& operands);
Value negative_of_negative(Graph& graph, const Node& node, const std::vector<Value>& operands);
Value no_op(Graph& graph, const Node& node, const std::vector<Value>& operands);
Value reduce_nothing(Graph& graph, const Node& node, const std::vector<Value>& operands);
Value reshape_of_reshape(Graph& graph, const Node& node, const std::vector<Value>& operands);
Value select_of_constant(Graph& graph, const Node& node, const std::vector<Value>& operands);
Value small_power(Graph& graph, const Node& node, const std::vector<Value>& operands);
Value stable_log_sum_exp(Graph& graph, const Node& node, const std::vector<Value>& operands);
Value sum_of_broadcast(Graph& graph, const Node& node, const std::vector<Value>& operands);
Value transpose_of_transpose(Graph& graph, const Node& node, const std::vector<Value>& operands);
Value widened_and_back(Graph& graph, const Node& node, const std::vector<Value>& operands);

}  // namespace millrace
