#include <map>
#include <string>
#include <utility>

#include "ir/operator.h"
#include "passes/pass.h"

namespace millrace {
namespace {

/// Whether node i makes an f32 copy of an input that is stored as bf16: a parameter.
bool widens_input(const Graph& graph, int i) {
  const Node& node = graph.node(i);
  return node.op->name == "cast" && node.types[0].dtype == f32 && graph.is_input(node.operands[0]) &&
         graph.type(node.operands[0]).dtype == bf16;
}

}  // namespace

// Where products compute in f32, a parameter that is stored as bf16 is copied to f32 for them. Forward and backward pass
// and update make a copy each, just before they read it: copies that live for longer would take more memory than f32
// parameters do.
Graph widen_again(const Graph& graph, const PassContext&) {
  Rewriter rewrite(graph);
  rewrite.copy_inputs();
  Graph& to = rewrite.graph();
  std::map<std::pair<int, Phase>, Value> copies;
  const auto copy_for = [&](const Value& value, Phase phase) {
    Value& copy = copies[{value.node, phase}];
    if (!copy.valid()) {
      const Node& cast = graph.node(value);
      const bool own = cast.location.phase == phase;
      to.set_location({cast.location.layer + (own ? "" : std::string(kAgain)), phase});
      copy = to.add(*cast.op, rewrite.mapped(cast.operands), cast.attributes);
    }
    rewrite.set(value, copy);
  };
  for (int i = 0; i < graph.size(); ++i) {
    if (rewrite.has({i, 0}) || widens_input(graph, i)) continue;
    const Node& node = graph.node(i);
    for (const Value& operand : node.operands)
      if (widens_input(graph, operand.node)) copy_for(operand, node.location.phase);
    rewrite.copy(i);
  }
  for (const Value& output : graph.outputs())
    if (!rewrite.has(output)) copy_for(output, graph.node(output).location.phase);
  return rewrite.finish();
}

}  // namespace millrace
