#include "onnx/models/texts.h"

#include <algorithm>

#include <millrace/error.h>
#include <millrace/operator.h>

#include "base/format.h"
#include "base/words.h"

namespace millrace::onnx {
namespace {

TextRole role_of(const std::string& name) {
  const std::string lower = lower_case(name);
  const auto has = [&](const char* word) { return lower.find(word) != std::string::npos; };
  if (has("mask")) return TextRole::mask;
  if (has("type") || has("segment")) return TextRole::types;
  return has("position") ? TextRole::positions : TextRole::tokens;
}

/// 1 where there is a token. Of an empty text it is the first padding, as means over no token are no numbers.
Tensor mask_of(const Tensor& segments) {
  return maximum(cast(segments > 0, i64), cast(iota(segments.dim(1).size()) < 1, i64));
}

/// Whether rows of a table are picked by whole numbers.
bool looks_up(const Graph& graph, const Node& node) {
  return node.op->op_class == OpClass::movement && node.operands.size() == 2 &&
         graph.type(node.operands[0]).dtype.is_float() && graph.type(node.operands[1]).dtype.is_int();
}

/// Whether the numbers that a lookup goes by are those of an input. What only asks where they are padding, as
/// RoBERTa's numbers of places do, is not.
bool is_made_of(const Graph& graph, Value value, Value input) {
  if (value == input) return true;
  const Node& node = graph.node(value.node);
  if (node.op->op_class != OpClass::elementwise || graph.type(value).dtype.is_bool()) return false;
  return std::any_of(node.operands.begin(), node.operands.end(),
                     [&](Value operand) { return is_made_of(graph, operand, input); });
}

}  // namespace

std::optional<std::vector<TextRole>> text_roles(const std::vector<nn::InputSpec>& inputs) {
  std::vector<TextRole> roles;
  for (const nn::InputSpec& input : inputs) {
    if (input.type.shape.rank() != 2) return std::nullopt;
    roles.push_back(inputs.size() == 1 ? TextRole::tokens : role_of(input.name));
    // Only masks come as other numbers than whole ones.
    if (roles.back() != TextRole::mask && !input.type.dtype.is_int()) return std::nullopt;
  }
  if (std::count(roles.begin(), roles.end(), TextRole::tokens) != 1) return std::nullopt;
  return roles;
}

std::vector<Tensor> text_inputs(const std::vector<TextRole>& roles, std::span<const Tensor> given) {
  const Tensor& tokens = given[0];
  std::vector<Tensor> inputs;
  for (const TextRole role : roles) {
    if (role == TextRole::tokens)
      inputs.push_back(tokens);
    else if (role == TextRole::mask)
      inputs.push_back(given.size() > 1 ? mask_of(given[1]) : tokens * 0 + 1);
    else if (role == TextRole::types)
      inputs.push_back(tokens * 0);
    else
      inputs.push_back(tokens * 0 + iota(tokens.dim(1).size()));
  }
  return inputs;
}

void check_vocabulary(const Graph& graph, const std::string& tokens, int64_t vocabulary) {
  const std::vector<std::string>& names = graph.input_names();
  const auto at = std::find(names.begin(), names.end(), tokens);
  if (at == names.end()) return;
  const Value input = graph.inputs()[static_cast<size_t>(at - names.begin())];
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (!looks_up(graph, node) || !is_made_of(graph, node.operands[1], input)) continue;
    const Dim rows = graph.type(node.operands[0]).shape[0];
    if (rows.is_static() && rows.size() < vocabulary)
      fail<InputError>(
          "it knows {} tokens, and the recipe's tokenizer has {}: input.tokenizer is to be the one that the "
          "model was trained with",
          rows.size(), vocabulary);
  }
}

}  // namespace millrace::onnx
