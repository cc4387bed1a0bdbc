#include "runtime/constant_graph.h"

#include <millrace/operator.h>

#include "backend/ref/evaluate.h"
#include "base/format.h"
#include "ir/values.h"

namespace millrace {

double work_of(const Graph& graph) {
  double work = 0;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.op->is_given()) continue;
    for (const Type& type : node.types) work += static_cast<double>(type.shape.count());
    if (node.op->op_class == OpClass::heavy && node.op->flops) work += node.op->flops(graph, node);
  }
  return work;
}

std::vector<Array> run_once(const Graph& graph, const CompileOptions& options,
                            std::map<std::string, std::string>* made) {
  Program program = Program::compile(graph, options);
  if (made) made->insert(program.choices().begin(), program.choices().end());
  program.run();
  std::vector<Array> arrays;
  for (int i = 0; i < program.output_count(); ++i) arrays.push_back(program.output(i));
  return arrays;
}

std::vector<Array> evaluate_constant_graph(const Graph& graph) {
  constexpr double little = 4e6;  // compiling a program takes as long
  if (work_of(graph) <= little) return ref::evaluate(graph, {});
  // Constants are its inputs, else compiling would compute all that they give.
  Graph of_inputs;
  CompileOptions options;
  std::map<Value, Value> map;
  for (int i = 0; i < graph.size(); ++i) {
    const Array* const constant = graph.constant_value({i, 0});
    if (constant && constant->count() > 1) {
      const auto at = static_cast<int>(options.inputs.size());
      options.inputs[at] = *constant;
      map[{i, 0}] = of_inputs.input(fmt::format("x{}", at), constant->type());
      continue;
    }
    std::vector<Value> operands;
    for (const Value& operand : graph.node(i).operands) operands.push_back(map.at(operand));
    map_results(map, graph, i, of_inputs.add_copy(graph, i, std::move(operands)));
  }
  std::vector<Value> outputs;
  for (const Value& output : graph.outputs()) outputs.push_back(map.at(output));
  of_inputs.set_outputs(std::move(outputs));
  return run_once(of_inputs, options);
}

}  // namespace millrace
