#include <millrace/operator.h>

#include "passes/rules/rule.h"

namespace millrace {

// A float that was cast to a wider one and back is itself. (bf16 parameters that a loop reads as f32 and
// multiplies as bf16.)
static Value widened_and_back(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (!node.op->converts) return {};
  const Node& wider = graph.node(operands[0]);
  if (!wider.op->converts) return {};
  const DType narrow = graph.type(wider.operands[0]).dtype, wide = wider.types[0].dtype;
  const bool holds_all = narrow.is_float() && wide.is_float() && narrow.bits < wide.bits;
  return holds_all && node.types[0].dtype == narrow ? wider.operands[0] : Value{};
}

MILLRACE_RULE(widened_and_back){.name = "widened-and-back",
                                .doc = "a float that was cast to a wider one and back is itself",
                                .place = 50,
                                .exact = true,
                                .apply = widened_and_back};

}  // namespace millrace
