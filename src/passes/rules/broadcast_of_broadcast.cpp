#include <millrace/operator.h>

#include "passes/rules/rule.h"

namespace millrace {

static Value broadcast_of_broadcast(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (!node.op->broadcasts) return {};
  if (graph.type(operands[0]).shape == node.types[0].shape) return operands[0];
  const Node& source = graph.node(operands[0]);
  if (!source.op->broadcasts) return {};
  return graph.add("broadcast", {source.operands[0]}, {{"shape", node.types[0].shape}});
}

MILLRACE_RULE(broadcast_of_broadcast){
    .name = "broadcast-of-broadcast",
    .doc = "broadcast(broadcast(x)) = broadcast(x), and x itself when the shape is its own",
    .place = 20,
    .exact = true,
    .apply = broadcast_of_broadcast};

}  // namespace millrace
