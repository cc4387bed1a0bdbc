// Rewriting captured graphs: patterns that match a value and what it is computed from, and replacements.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/graph.h>
#include <millrace/tensor.h>

namespace millrace {

/// The graph of a function of tensors: inputs "x0", "x1" … of the given types (dimensions may be named),
/// outputs in order; tensors that the function captured become constants. TypeError where shapes do not fit.
Graph capture(const std::function<std::vector<Tensor>(std::span<const Tensor>)>& function,
              std::span<const Type> inputs);

/// What named parts of a pattern stand for in a graph.
using Match = std::map<std::string, Value>;

/// What a value may look like. Names are for the parts that a replacement needs; a name that comes twice must
/// mean the same value both times.
class Pattern {
 public:
  /// Any value.
  static Pattern any(std::string name = "");
  /// The first result of an operator by its name ("mul"; `millrace explain` and Graph::str() show them) of
  /// such operands. InputError, naming the nearest, when there is no such operator, or it never has so many
  /// operands.
  static Pattern op(std::string_view op, std::vector<Pattern> operands, std::string name = "");
  /// A value that is this number everywhere: a scalar constant, maybe broadcast.
  static Pattern number(double value);
  /// The same pattern with a further condition, which is asked once the rest matches. InputError for an empty
  /// one.
  Pattern where(std::function<bool(const Graph&, Value)> condition) const;

  /// The parts of `value`, if it looks like this. Operands of add, mul, maximum and minimum match in either
  /// order.
  std::optional<Match> match(const Graph& graph, Value value) const;

 private:
  struct Part;
  explicit Pattern(std::shared_ptr<const Part> part) : part_(std::move(part)) {}
  /// Whether the rest fits too, once a part has matched.
  using Then = std::function<bool(Match&)>;
  static bool matches(const Part& part, const Graph& graph, Value value, Match& match, const Then& then);
  static bool operands_match(const Part& part, const Graph& graph, std::span<const Value> operands, size_t at,
                             Match& match, const Then& then);
  std::shared_ptr<const Part> part_;
};

/// A replacement appends to the graph what shall stand for the matched value, of the same type, and returns
/// it; an invalid Value leaves the match as it is.
using Replacement = std::function<Value(Graph& graph, const Match& match)>;

/// The graph with every value that matches replaced, operands first; what a replacement makes is not matched
/// again, inputs and the bodies of loops stay as they are. Values that are no longer read are dropped when
/// the graph is compiled. TypeError when a replacement has another type than the value it stands for.
Graph replace(const Graph& graph, const Pattern& pattern, const Replacement& replacement);

/// The results of a graph for these arguments, as part of whatever they are part of: lazy, compiled or
/// trained. TypeError where an argument has another type than its input.
std::vector<Tensor> apply_graph(const Graph& graph, std::span<const Tensor> arguments);

/// The name of a node's operator.
std::string_view operator_name(const Node& node);

}  // namespace millrace
