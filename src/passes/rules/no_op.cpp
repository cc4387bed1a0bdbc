#include <millrace/operator.h>

#include "passes/rules/rule.h"

namespace millrace {

static Value no_op(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  const bool same = operands.size() == 1 && graph.type(operands[0]) == node.types[0];
  return node.op->unchanged && same ? operands[0] : Value{};
}

MILLRACE_RULE(no_op){
    .name = "no-op",
    .doc = "a cast to the dtype that is there, a slice of all, a pad by nothing, a concat of one",
    .place = 40,
    .exact = true,
    .apply = no_op};

}  // namespace millrace
