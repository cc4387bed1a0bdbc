#include "ir/alone.h"

#include <millrace/operator.h>

#include "base/format.h"

namespace millrace {

Graph alone(const Graph& graph, const Node& node) {
  Graph one;
  one.set_origin(node.origin);
  std::vector<Value> operands, results;
  for (const Value& operand : node.operands)
    operands.push_back(one.input(fmt::format("x{}", operands.size()), graph.type(operand)));
  Value result = node.op->takes_body() ? one.add_with_body(*node.op, operands, node.attributes, node.body)
                                       : one.add(*node.op, operands, node.attributes);
  for (; result.output < static_cast<int>(node.types.size()); ++result.output) results.push_back(result);
  one.set_outputs(results);
  return one;
}

}  // namespace millrace
