#include "ops/body.h"
#include "passes/pass.h"

namespace millrace {

// Nodes that no output depends on go; graph inputs stay.
Graph eliminate_dead(const Graph& graph, const PassContext&) {
  const std::vector<char> live = ops::needed_by(graph, graph.outputs());
  Rewriter rewrite(graph);
  rewrite.go_through([&](int i) { return !live[i]; });
  return rewrite.finish();
}

MILLRACE_PASS(dce){
    .name = "dce", .doc = "nodes that no output depends on go", .place = 170, .run = eliminate_dead};

}  // namespace millrace
