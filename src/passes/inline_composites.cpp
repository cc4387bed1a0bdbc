#include <millrace/operator.h>

#include "passes/pass.h"

namespace millrace {
namespace {

/// True for a composite that no provider takes whole.
bool must_inline(const Graph& graph, const Node& node, const Target& target) {
  return node.body && !node.op->runs_body() && !target.taker(graph, node);
}

}  // namespace

// Composites that no provider takes whole are replaced by their bodies, until only primitives and claimed
// ones are left.
static Graph inline_composites(const Graph& graph, const PassContext& context) {
  Rewriter rewrite(graph);
  bool again = false;
  rewrite.go_through([&](int i) {
    const Node& node = graph.node(i);
    if (!must_inline(graph, node, context.target)) return false;
    rewrite.graph().set_origin(node.origin);
    const std::vector<Value> results =
        inline_graph(rewrite.graph(), *node.body, rewrite.mapped(node.operands));
    for (size_t r = 0; r < results.size(); ++r) rewrite.set({i, static_cast<int32_t>(r)}, results[r]);
    for (int k = 0; k < node.body->size(); ++k)
      again = again || must_inline(*node.body, node.body->node(k), context.target);
    return true;
  });
  Graph result = rewrite.finish();
  return again ? inline_composites(result, context) : result;
}

MILLRACE_PASS(inline){.name = "inline",
                      .doc = "composites that no provider takes whole are replaced by their bodies",
                      .place = 30,
                      .run = inline_composites};

}  // namespace millrace
