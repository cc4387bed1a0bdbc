// Shapes that fit by numpy's rule, and mean something else.
#include <optional>

#include <millrace/operator.h>

#include "base/format.h"
#include "check/check.h"
#include "check/context.h"

namespace millrace::check {
namespace {

/// An operand as it was before it was repeated, its shape in front filled with 1.
struct Repeated {
  Value from;
  std::vector<int64_t> sizes;
};
std::optional<Repeated> repeated_of(const Graph& graph, Value operand) {
  const Node& node = graph.node(operand);
  if (!node.op->broadcasts || node.operands.empty()) return std::nullopt;
  const Shape &from = graph.type(node.operands[0]).shape, &to = node.types[0].shape;
  Repeated repeated{node.operands[0], std::vector<int64_t>(static_cast<size_t>(to.rank()), 1)};
  for (int d = 0; d < from.rank(); ++d)
    repeated.sizes[static_cast<size_t>(to.rank() - from.rank() + d)] = from[d].size();
  return repeated;
}

struct Accidents {
  const Recorded& recorded;
  int64_t rows;
  std::vector<char> data, of_targets, of_weights;

  bool is(const std::vector<char>& what, Value value) const { return what[static_cast<size_t>(value.node)]; }

  /// A value with the batch along another axis is repeated along axis 0, where the other one has the batch.
  std::string pairs(const Node& node) const {
    const Shape& shape = node.types[0].shape;
    if (shape.rank() < 2 || shape[0].size() != rows) return {};
    bool rowwise = false, across = false;
    for (const Value& operand : node.operands) {
      if (!is(data, operand)) continue;
      const auto repeated = repeated_of(recorded.graph, operand);
      std::vector<int64_t> sizes = recorded.graph.type(operand).shape.sizes();
      if (repeated) sizes = repeated->sizes;
      if (sizes.empty()) continue;
      bool elsewhere = false;
      for (size_t d = 1; d < sizes.size(); ++d) elsewhere |= sizes[d] == rows;
      if (sizes[0] == rows) rowwise = true;
      if (sizes[0] == 1 && elsewhere && repeated) across = true;
    }
    if (!rowwise || !across) return {};
    return fmt::format("{} of each sample with each other one ({})", node.op->name, shape.str());
  }

  /// A target is repeated for several outputs, or an output for several targets.
  std::string one_for_many(const Node& node) const {
    const bool compares = node.op->is(ScalarOp::sub) || node.op->op_class == OpClass::composite;
    if (!compares || node.operands.size() < 2 || node.types[0].shape.rank() > 3) return {};
    for (size_t k = 0; k < 2; ++k) {
      const Value one = node.operands[k], other = node.operands[1 - k];
      const bool target = is(of_targets, one) && !is(of_weights, one) && is(of_weights, other);
      const bool output =
          is(of_weights, one) && is(data, one) && is(of_targets, other) && !is(of_weights, other);
      const auto repeated = repeated_of(recorded.graph, one);
      if ((!target && !output) || !repeated || repeated->sizes[0] != rows) continue;
      const Shape& to = recorded.graph.type(one).shape;
      for (int d = 1; d < to.rank(); ++d)
        if (repeated->sizes[static_cast<size_t>(d)] == 1 && to[d].size() > 1)
          return fmt::format("{} repeats {} {} times ({} against {})", node.op->name,
                             target ? "a target" : "an output", to[d].size(),
                             recorded.graph.type(repeated->from).shape.str(),
                             recorded.graph.type(other).shape.str());
    }
    return {};
  }
};

Finding run_broadcasting(Context& context) {
  const Recorded& recorded = context.recorded();
  const auto inputs = std::span(recorded.graph.inputs());
  std::vector<Value> targets;
  for (const size_t at : context.subject().targets) targets.push_back(inputs[at]);
  const Accidents accidents{recorded, context.rows(),
                            recorded.reached_from(inputs.first(static_cast<size_t>(recorded.inputs))),
                            recorded.reached_from(targets),
                            recorded.reached_from(inputs.subspan(static_cast<size_t>(recorded.inputs) + 1))};
  const std::vector<char> needed = recorded.needed();
  int64_t broadcasts = 0;
  for (int i = 0; i < recorded.graph.size(); ++i) {
    const Node& node = recorded.graph.node(i);
    broadcasts += node.op->broadcasts;
    if (!needed[static_cast<size_t>(i)] || node.op->broadcasts || context.rows() < 2) continue;
    for (const std::string& what : {accidents.pairs(node), accidents.one_for_many(node)}) {
      if (what.empty()) continue;
      return with_numbers(
          failed(fmt::format("{}{}", what, node.origin.empty() ? "" : ", in " + node.origin.place()),
                 "give outputs and targets the same shape before they meet (squeeze, unsqueeze, reshape): "
                 "[rows] and [rows, 1] make [rows, rows]"),
          {{"accidents", 1}});
    }
  }
  return with_numbers(
      passed(fmt::format("{} broadcasts, none of which pairs samples or repeats targets", broadcasts)),
      {{"accidents", 0}});
}

}  // namespace

MILLRACE_CHECK_KIND(broadcasting){
    .name = "broadcasting",
    .doc = "shapes that fit by accident: each sample against each other one, one target for many outputs",
    .matters =
        "[rows] less [rows, 1] is a table of all differences, whose mean is a loss that falls to the "
        "variance of the targets and no further",
    .place = 250,
    .run = run_broadcasting,
};

}  // namespace millrace::check
