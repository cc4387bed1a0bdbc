#include "ops/body.h"

#include <utility>

#include <millrace/operator.h>

#include "base/format.h"

namespace millrace::ops {

std::vector<Value> add_inputs(Graph& graph, std::span<const Type> types) {
  std::vector<Value> inputs;
  for (const Type& type : types) inputs.push_back(graph.input(fmt::format("x{}", inputs.size()), type));
  return inputs;
}

std::vector<char> needed_by(const Graph& graph, const std::vector<Value>& values) {
  std::vector<char> needed(graph.size(), 0);
  for (const Value& value : values) needed[value.node] = 1;
  for (int i = graph.size() - 1; i >= 0; --i)
    if (needed[i])
      for (const Value& operand : graph.node(i).operands) needed[operand.node] = 1;
  return needed;
}

std::vector<char> reached_from(const Graph& graph, std::span<const Value> values) {
  std::vector<char> reached(graph.size(), 0);
  for (const Value& value : values) reached[value.node] = 1;
  for (int i = 0; i < graph.size(); ++i)
    for (const Value& operand : graph.node(i).operands)
      if (reached[operand.node]) reached[i] = 1;
  return reached;
}

Graph part_of_body(const Graph& body, const std::vector<int>& inputs, const std::vector<Value>& outputs) {
  const std::vector<char> needed = needed_by(body, outputs);
  Rewriter rewrite(body);
  for (const int k : inputs)
    rewrite.set(body.inputs()[k], rewrite.graph().input(body.input_names()[k], body.type(body.inputs()[k])));
  for (int i = 0; i < body.size(); ++i)
    if (needed[i] && !rewrite.has({i, 0})) rewrite.copy(i);
  rewrite.graph().set_origin("");
  rewrite.graph().set_outputs(rewrite.mapped(outputs));
  return std::move(rewrite.graph());
}

}  // namespace millrace::ops
