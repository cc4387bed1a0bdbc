#include <millrace/operator.h>

#include "ops/is.h"
#include "passes/rules/rule.h"

namespace millrace {

static Value gather_of_cast(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (!ops::is(node, "gather")) return {};
  const Node& cast = graph.node(operands[0]);
  if (!cast.op->converts) return {};
  if (node.types[0].shape.count() >= cast.types[0].shape.count()) return {};
  const Attributes attributes = cast.attributes;
  const Value taken = graph.add("gather", {cast.operands[0], operands[1]}, node.attributes);
  return graph.add("cast", {taken}, attributes);
}

MILLRACE_RULE(gather_of_cast){
    .name = "gather-of-cast",
    .doc = "rows of a table that was cast are rows that are cast, where they are fewer",
    .place = 150,
    .exact = true,
    .apply = gather_of_cast};

}  // namespace millrace
