#include "passes/loops.h"

#include <millrace/operator.h>

#include "ops/cond.h"

namespace millrace {

Graph with_bodies(Graph graph, const std::function<Graph(const Graph&)>& change) {
  bool any = false;
  for (int i = 0; i < graph.size(); ++i) any = any || graph.node(i).op->runs_body();
  if (!any) return graph;
  Rewriter rewrite(graph);
  rewrite.go_through([&](int i) {
    const Node& node = graph.node(i);
    if (!node.op->runs_body()) return false;
    rewrite.graph().set_origin(node.origin);
    const auto changed = [&](const Graph& body) { return change(with_bodies(body, change)); };
    Graph body = node.op->op_class == OpClass::branch
                     ? ops::join_branches(changed(ops::branch_of(*node.body, true)),
                                          changed(ops::branch_of(*node.body, false)))
                     : changed(*node.body);
    const Value added =
        rewrite.graph().add_with_body(*node.op, rewrite.mapped(node.operands), node.attributes,
                                      std::make_shared<const Graph>(std::move(body)));
    rewrite.set_all(i, added);
    return true;
  });
  return rewrite.finish();
}

}  // namespace millrace
