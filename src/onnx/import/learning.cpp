#include "onnx/import/learning.h"

#include <algorithm>

namespace millrace::onnx {
namespace {

/// Names of values that a node reads, those that its graphs read of the graphs around them among them.
std::vector<std::string> names_read(const NodeProto& node) {
  std::vector<std::string> names;
  for (const std::string& name : node.inputs)
    if (!name.empty()) names.push_back(name);
  for (const AttributeProto& attribute : node.attributes) {
    if (!attribute.graph) continue;
    for (const NodeProto& inner : attribute.graph->nodes)
      for (std::string& name : names_read(inner)) names.push_back(std::move(name));
    for (const ValueInfo& output : attribute.graph->outputs) names.push_back(output.name);
  }
  return names;
}

}  // namespace

Needed needed_for(const GraphProto& graph, const Learning& learning) {
  Needed needed;
  needed.values.insert(learning.outputs.begin(), learning.outputs.end());
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool wanted = std::any_of(node->outputs.begin(), node->outputs.end(), [&](const std::string& name) {
      return name != learning.enter && needed.values.contains(name);
    });
    if (!wanted) continue;
    needed.nodes.insert(&*node);
    for (const std::string& name : names_read(*node)) needed.values.insert(name);
  }
  return needed;
}

}  // namespace millrace::onnx
