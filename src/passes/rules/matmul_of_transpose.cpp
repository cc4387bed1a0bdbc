#include <millrace/operator.h>

#include "ops/matmul.h"
#include "passes/rules/axes.h"
#include "passes/rules/rule.h"

namespace millrace {

static Value matmul_of_transpose(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  const auto product = ops::matmul_of(node);
  if (!product) return {};
  bool flags[] = {product->transpose_a, product->transpose_b};
  std::vector<Value> sources = operands;
  bool changed = false;
  for (int side = 0; side < 2; ++side) {
    const Node& operand = graph.node(operands[side]);
    if (!operand.op->permutation || !swaps_last_two(operand.op->permutation(operand))) continue;
    sources[side] = operand.operands[0];
    flags[side] = !flags[side];
    changed = true;
  }
  if (!changed) return {};
  return graph.add("matmul", sources, {{"transpose_a", flags[0]}, {"transpose_b", flags[1]}});
}

MILLRACE_RULE(matmul_of_transpose){
    .name = "matmul-of-transpose",
    .doc = "a product of matrices whose last two dimensions were swapped reads them as they were",
    .place = 160,
    .exact = true,
    .apply = matmul_of_transpose};

}  // namespace millrace
