#include "passes/loops.h"

#include <millrace/operator.h>

#include "ops/cond.h"

namespace millrace {

Graph with_bodies(const Graph& graph, const std::function<Graph(const Graph&)>& change) {
  bool any = false;
  for (int i = 0; i < graph.size(); ++i) any = any || graph.node(i).op->runs_body();
  if (!any) return graph;
  Rewriter rewrite(graph);
  rewrite.go_through([&](int i) {
    const Node& node = graph.node(i);
    if (!node.op->runs_body()) return false;
    rewrite.graph().set_location(node.location);
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

std::vector<char> needed_by(const Graph& graph, const std::vector<Value>& values) {
  std::vector<char> needed(graph.size(), 0);
  for (const Value& value : values) needed[value.node] = 1;
  for (int i = graph.size() - 1; i >= 0; --i)
    if (needed[i])
      for (const Value& operand : graph.node(i).operands) needed[operand.node] = 1;
  return needed;
}

std::shared_ptr<const Graph> part_of_body(const Graph& body, const std::vector<int>& inputs,
                                          const std::vector<Value>& outputs) {
  const std::vector<char> needed = needed_by(body, outputs);
  Rewriter rewrite(body);
  for (const int k : inputs)
    rewrite.set(body.inputs()[k], rewrite.graph().input(body.input_names()[k], body.type(body.inputs()[k])));
  for (int i = 0; i < body.size(); ++i)
    if (needed[i] && !rewrite.has({i, 0})) rewrite.copy(i);
  rewrite.graph().set_location("");
  rewrite.graph().set_outputs(rewrite.mapped(outputs));
  return std::make_shared<const Graph>(std::move(rewrite.graph()));
}

}  // namespace millrace
