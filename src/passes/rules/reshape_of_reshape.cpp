#include <millrace/operator.h>

#include "passes/rules/rule.h"

namespace millrace {

static Value reshape_of_reshape(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (!node.op->reshapes()) return {};
  Value source = operands[0];
  while (graph.node(source).op->reshapes()) source = graph.node(source).operands[0];
  if (graph.type(source).shape == node.types[0].shape) return source;
  if (source == operands[0]) return {};
  return graph.add("reshape", {source}, {{"shape", node.types[0].shape}});
}

MILLRACE_RULE(reshape_of_reshape){
    .name = "reshape-of-reshape",
    .doc = "reshape(reshape(x)) = reshape(x), and x itself when the shape is its own",
    .place = 10,
    .exact = true,
    .apply = reshape_of_reshape};

}  // namespace millrace
