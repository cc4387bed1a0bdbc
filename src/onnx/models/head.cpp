#include "onnx/models/head.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <millrace/error.h>

#include "base/format.h"
#include "onnx/models/trainable.h"

namespace millrace::onnx {
namespace {

const NodeProto* node_of(const Model& model, const std::string& value) {
  for (const NodeProto& node : model.graph.nodes)
    if (std::find(node.outputs.begin(), node.outputs.end(), value) != node.outputs.end()) return &node;
  return nullptr;
}

/// The operand that is no constant of the file, where there is exactly one.
std::string data_operand(const Model& model, const NodeProto& node) {
  std::string found;
  for (const std::string& name : node.inputs) {
    const NodeProto* const from = node_of(model, name);
    if (name.empty() || find_initialiser(model, name) || (from && from->op_type == "Constant")) continue;
    if (!found.empty()) return {};
    found = name;
  }
  return found;
}

}  // namespace

End logits_of(const Model& model) {
  if (model.graph.outputs.empty()) fail<InputError>("the model has no outputs");
  const std::string& output = model.graph.outputs[0].name;
  const NodeProto* node = node_of(model, output);
  while (node && node->op_type == "Identity" && !node->inputs.empty()) node = node_of(model, node->inputs[0]);
  static const std::set<std::string_view> last = {"Softmax", "LogSoftmax", "Sigmoid"};
  if (node && node->domain.empty() && last.contains(node->op_type) && !node->inputs.empty())
    return {node->inputs[0],
            fmt::format("its {} at the end is left out, as losses and predictions have their own: "
                        "model.output_value = \"{}\" keeps it",
                        node->op_type, output)};
  return {output, ""};
}

End features_of(const Model& model, const std::string& logits) {
  static const std::set<std::string_view> products = {"Gemm", "MatMul", "Conv"};
  static const std::set<std::string_view> passed = {"Add",     "Identity", "Flatten",    "Reshape",
                                                    "Squeeze", "Dropout",  "ReduceMean", "GlobalAveragePool"};
  std::string value = logits;
  for (const NodeProto* node = node_of(model, value); node; node = node_of(model, value)) {
    if (products.contains(node->op_type) && !node->inputs.empty() &&
        !find_initialiser(model, node->inputs[0]))
      return {node->inputs[0], ""};
    const std::string before = passed.contains(node->op_type) ? data_operand(model, *node) : "";
    if (before.empty()) break;
    value = before;
  }
  fail<InputError>(
      "its head cannot be told: '{}' comes from no product that could be replaced; model.output_value names "
      "the "
      "value that a new head is to stand behind",
      value);
}

std::string prepared_input(const Model& model) {
  static const std::set<std::string_view> first = {"Conv", "Gemm", "MatMul", "BatchNormalization"};
  for (const NodeProto& node : model.graph.nodes)
    if (first.contains(node.op_type) && node.inputs.size() > 1 && !find_initialiser(model, node.inputs[0]))
      return node.inputs[0];
  return {};
}

bool batch_norms_folded(const Model& model) {
  bool convolutions = false;
  for (const NodeProto& node : model.graph.nodes) {
    if (node.op_type == "BatchNormalization") return false;
    if (node.op_type != "Conv") continue;
    if (node.inputs.size() < 3 || node.inputs[2].empty()) return false;
    convolutions = true;
  }
  return convolutions;
}

}  // namespace millrace::onnx
