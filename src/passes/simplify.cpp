#include <algorithm>

#include "ir/operator.h"
#include "passes/pass.h"

namespace millrace {
namespace {

/// One rule: the value of the new graph that stands for `node` (operands already mapped), or an invalid one.
using Rule = Value (*)(Graph& graph, const Node& node, const std::vector<Value>& operands);

/// True when `value` is `number` everywhere: a scalar constant, maybe broadcast.
bool is_filled_with(const Graph& graph, Value value, double number) {
  while (graph.node(value).op->name == "broadcast") value = graph.node(value).operands[0];
  const Array* constant = graph.constant_value(value);
  return constant && constant->count() == 1 && constant->at(0) == number;
}

Value reshape_of_reshape(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (node.op->name != "reshape") return {};
  Value source = operands[0];
  while (graph.node(source).op->name == "reshape") source = graph.node(source).operands[0];
  if (graph.type(source).shape == node.types[0].shape) return source;
  if (source == operands[0]) return {};
  return graph.add("reshape", {source}, node.attributes);
}

Value broadcast_of_broadcast(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (node.op->name != "broadcast") return {};
  if (graph.type(operands[0]).shape == node.types[0].shape) return operands[0];
  const Node& source = graph.node(operands[0]);
  if (source.op->name != "broadcast") return {};
  return graph.add("broadcast", {source.operands[0]}, node.attributes);
}

Value transpose_of_transpose(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (node.op->name != "transpose") return {};
  std::vector<int64_t> permutation = node.attributes.ints("permutation");
  Value source = operands[0];
  const Node& inner = graph.node(source);
  const bool nested = inner.op->name == "transpose";
  if (nested) {
    for (int64_t& axis : permutation) axis = inner.attributes.ints("permutation")[axis];
    source = inner.operands[0];
  }
  if (std::is_sorted(permutation.begin(), permutation.end())) return source;
  return nested ? graph.add("transpose", {source}, {{"permutation", permutation}}) : Value{};
}

Value no_op_cast(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  return node.op->name == "cast" && graph.type(operands[0]) == node.types[0] ? operands[0] : Value{};
}

Value add_zero(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (node.op->name != "add") return {};
  // Not exact for −0 + 0, which nobody can tell from 0 but by its sign.
  if (is_filled_with(graph, operands[1], 0)) return operands[0];
  if (is_filled_with(graph, operands[0], 0)) return operands[1];
  return {};
}

Value multiply_by_one(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (node.op->name != "mul") return {};
  if (is_filled_with(graph, operands[1], 1)) return operands[0];
  if (is_filled_with(graph, operands[0], 1)) return operands[1];
  return {};
}

constexpr Rule rules[] = {reshape_of_reshape, broadcast_of_broadcast, transpose_of_transpose, no_op_cast,
                          add_zero,           multiply_by_one};

}  // namespace

// Local rules that change no result.
Graph simplify(const Graph& graph, const PassContext&) {
  Rewriter rewrite(graph);
  rewrite.copy_inputs();
  for (int i = 0; i < graph.size(); ++i) {
    if (rewrite.has({i, 0})) continue;
    const Node& node = graph.node(i);
    Value simpler;
    if (!node.operands.empty()) {
      rewrite.graph().set_location(node.location);
      const std::vector<Value> operands = rewrite.mapped(node.operands);
      for (const Rule rule : rules)
        if (simpler = rule(rewrite.graph(), node, operands); simpler.valid()) break;
    }
    if (simpler.valid())
      rewrite.set({i, 0}, simpler);
    else
      rewrite.copy(i);
  }
  return rewrite.finish();
}

}  // namespace millrace
