#include <algorithm>

#include <millrace/operator.h>

#include "passes/rules/rule.h"

namespace millrace {

static Value transpose_of_transpose(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (!node.op->permutation) return {};
  std::vector<int64_t> permutation = node.op->permutation(node);
  Value source = operands[0];
  const Node& inner = graph.node(source);
  const bool nested = inner.op->permutation != nullptr;
  if (nested) {
    for (int64_t& axis : permutation) axis = inner.op->permutation(inner)[axis];
    source = inner.operands[0];
  }
  if (std::is_sorted(permutation.begin(), permutation.end())) return source;
  return nested ? graph.add("transpose", {source}, {{"permutation", permutation}}) : Value{};
}

MILLRACE_RULE(transpose_of_transpose){.name = "transpose-of-transpose",
                                      .doc = "two permutations are one; the identity is none",
                                      .place = 30,
                                      .exact = true,
                                      .apply = transpose_of_transpose};

}  // namespace millrace
