#include "passes/precision_table.h"

#include <set>
#include <string_view>

namespace millrace {

Arithmetic arithmetic_of(const Node& node) {
  static const std::set<std::string_view> narrow = {"matmul", "conv2d", "conv2d_input_grad",
                                                    "conv2d_weight_grad"};
  static const std::set<std::string_view> follows = {
      "add", "sub",  "mul",     "neg",  "abs",     "maximum", "minimum",           "clamp",          "select",
      "erf", "tanh", "sigmoid", "cast", "reshape", "square",  "max_pool2d_values", "max_pool2d_grad"};
  if (narrow.contains(node.op->name)) return Arithmetic::narrow;
  if (follows.contains(node.op->name) || node.op->op_class == OpClass::movement) return Arithmetic::follows;
  return Arithmetic::full;
}

size_t narrow_operands(const Node& node) {
  const std::string_view name = node.op->name;
  if (name == "attention") return 3;
  if (name == "attention_grad") return 4;
  if (name == "self_attention") return 1;
  if (name == "self_attention_grad") return 2;
  return arithmetic_of(node) == Arithmetic::narrow ? node.operands.size() : 0;
}

bool wants_f32(const Node& node) {
  static const std::set<std::string_view> names = {"exp", "expm1", "log",   "log1p",      "div",
                                                   "pow", "sqrt",  "rsqrt", "reciprocal", "sin",
                                                   "cos", "rem",   "equal", "not_equal"};
  return names.contains(node.op->name);
}

}  // namespace millrace
