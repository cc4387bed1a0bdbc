#include <algorithm>

#include "ops/is.h"
#include "passes/rules/rule.h"

namespace millrace {

constexpr size_t kMany = 64;

static Value concat_of_many(Graph& graph, const Node& node, const std::vector<Value>& operands) {
  if (operands.size() <= kMany || !ops::is(node, "concat")) return {};
  std::vector<Value> parts = operands;
  while (parts.size() > kMany) {
    std::vector<Value> joined;
    for (size_t from = 0; from < parts.size(); from += kMany) {
      const auto begin = parts.begin() + static_cast<std::ptrdiff_t>(from);
      const auto count = static_cast<std::ptrdiff_t>(std::min(kMany, parts.size() - from));
      joined.push_back(count == 1 ? *begin : graph.add(*node.op, {begin, begin + count}, node.attributes));
    }
    parts = std::move(joined);
  }
  return graph.add(*node.op, std::move(parts), node.attributes);
}

MILLRACE_RULE(concat_of_many){
    .name = "concat-of-many",
    .doc =
        "concat of more than 64 values: of parts that are such of 64 each, as code has a limit of operands",
    .place = 210,
    .exact = true,
    .apply = concat_of_many};

}  // namespace millrace
