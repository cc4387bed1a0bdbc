#include "backend/ref/evaluate.h"

#include <millrace/operator.h>

#include "backend/ref/registry.h"
#include "backend/ref/scalar.h"
#include "base/format.h"

namespace millrace::ref {
namespace {

std::vector<Array> run_tape(const ScalarTape& tape, Scalar result, const Node& node) {
  MILLRACE_CHECK(tape.dtype(result) == node.types[0].dtype, "the body of {} gives {}, its type is {}",
                 node.op->name, tape.dtype(result).name(), node.types[0].str());
  Array out(node.types[0]);
  tape.run(result, out);
  return {out};
}

std::vector<Array> evaluate_scalar_body(const Node& node, std::span<const Array> operands) {
  ScalarTape tape(operands);
  std::vector<Scalar> arguments;
  for (size_t k = 0; k < operands.size(); ++k) arguments.push_back(tape.operand(static_cast<int>(k)));
  const Scalar result = node.op->scalar(tape, arguments, node);
  return run_tape(tape, result, node);
}

}  // namespace

std::vector<Array> interpret_element_body(const Node& node, std::span<const Array> operands) {
  ScalarTape tape(operands);
  std::vector<Type> types;
  for (const Array& operand : operands) types.push_back(operand.type());
  std::vector<Scalar> index;
  for (int d = 0; d < node.types[0].shape.rank(); ++d) index.push_back(tape.position(d));
  const Scalar result = node.op->element(tape, index, {node, types});
  return run_tape(tape, result, node);
}

std::vector<Array> evaluate_node(const Graph&, const Node& node, std::span<const Array> operands) {
  std::vector<Array> results;
  if (const Function function = find_function(node.op->name))
    results = function(node, operands);
  else if (node.op->reduction)
    results = reduce(node, operands);
  else if (node.op->scalar)
    results = evaluate_scalar_body(node, operands);
  else if (node.op->evaluate)
    results = node.op->evaluate(node, operands);
  else if (node.op->element)
    results = interpret_element_body(node, operands);
  else if (node.op->op_class == OpClass::view)
    results = {operands[0].reshaped(node.types[0].shape)};
  else if (node.body)
    results = evaluate(*node.body, operands);
  else
    fail<InternalError>("the reference back end cannot compute {}", node.op->name);
  MILLRACE_CHECK(results.size() == node.types.size(), "{} gives {} results, {} expected", node.op->name,
                 results.size(), node.types.size());
  for (size_t r = 0; r < results.size(); ++r)
    MILLRACE_CHECK(results[r].type() == node.types[r], "result {} of {} is {}, its type is {}", r,
                   node.op->name, results[r].type().str(), node.types[r].str());
  return results;
}

namespace {

/// How often each node's results are used by nodes that the outputs need; 0: not needed.
std::vector<int> needed_uses(const Graph& graph) {
  std::vector<int> uses(graph.size());
  for (const Value& output : graph.outputs()) ++uses[output.node];
  for (int i = graph.size() - 1; i >= 0; --i)
    if (uses[i] > 0)
      for (const Value& operand : graph.node(i).operands) ++uses[operand.node];
  return uses;
}

}  // namespace

std::vector<Array> evaluate(const Graph& graph, std::span<const Array> inputs) {
  if (inputs.size() != graph.inputs().size())
    fail<TypeError>("{} inputs given, the graph has {}", inputs.size(), graph.inputs().size());
  std::vector<std::vector<Array>> values(graph.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Type& type = graph.type(graph.inputs()[i]);
    if (inputs[i].type() != type)
      fail<TypeError>("input '{}' is {}, the graph expects {}", graph.input_names()[i],
                      inputs[i].type().str(), type.str());
    values[graph.inputs()[i].node] = {inputs[i]};
  }
  std::vector<int> uses = needed_uses(graph);
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (uses[i] == 0 || !values[i].empty()) continue;
    if (const Array* constant = graph.constant_value({i, 0})) {
      values[i] = {*constant};
      continue;
    }
    std::vector<Array> operands;
    for (const Value& operand : node.operands) operands.push_back(values[operand.node][operand.output]);
    values[i] = evaluate_node(graph, node, operands);
    for (const Value& operand : node.operands)
      if (--uses[operand.node] == 0) values[operand.node].clear();
  }
  std::vector<Array> outputs;
  for (const Value& output : graph.outputs()) outputs.push_back(values[output.node][output.output]);
  return outputs;
}

}  // namespace millrace::ref
