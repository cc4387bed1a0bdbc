#include "passes/pass.h"

namespace millrace {

// Nodes that no output depends on go; graph inputs stay.
Graph eliminate_dead(const Graph& graph, const PassContext&) {
  std::vector<char> live(graph.size(), 0);
  for (const Value& output : graph.outputs()) live[output.node] = 1;
  for (int i = graph.size() - 1; i >= 0; --i)
    if (live[i])
      for (const Value& operand : graph.node(i).operands) live[operand.node] = 1;
  Rewriter rewrite(graph);
  rewrite.copy_inputs();
  for (int i = 0; i < graph.size(); ++i)
    if (live[i] && !rewrite.has({i, 0})) rewrite.copy(i);
  return rewrite.finish();
}

MILLRACE_PASS(dce){
    .name = "dce", .doc = "nodes that no output depends on go", .place = 170, .run = eliminate_dead};

}  // namespace millrace
