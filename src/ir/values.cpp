#include "ir/values.h"

namespace millrace {

std::vector<Type> types_of(const Graph& graph, std::span<const Value> values) {
  std::vector<Type> types;
  for (const Value& value : values) types.push_back(graph.type(value));
  return types;
}

std::vector<std::vector<int>> users_of(const Graph& graph) {
  std::vector<std::vector<int>> users(graph.size());
  for (int i = 0; i < graph.size(); ++i)
    for (const Value& operand : graph.node(i).operands)
      if (users[operand.node].empty() || users[operand.node].back() != i) users[operand.node].push_back(i);
  return users;
}

void map_results(std::map<Value, Value>& map, const Graph& graph, int index, Value first) {
  for (int32_t r = 0; r < static_cast<int32_t>(graph.node(index).types.size()); ++r)
    map[{index, r}] = {first.node, first.output + r};
}

}  // namespace millrace
