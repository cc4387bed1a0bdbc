#include "ir/missing_parts.h"

#include <algorithm>
#include <set>

#include "base/format.h"

namespace millrace {
namespace {

/// The part that the operator's class demands, or null when it is there.
const char* missing_meaning(const Operator& op) {
  switch (op.op_class) {
    case OpClass::elementwise:
      return op.scalar ? nullptr : "a scalar body";
    case OpClass::movement:
    case OpClass::generator:
      return op.element ? nullptr : "an element body";
    case OpClass::reduction:
      return op.reduction ? nullptr : "the kind of reduction";
    case OpClass::composite:
      return op.body ? nullptr : "a body";
    case OpClass::heavy:
      return op.flops ? nullptr : "its number of floating-point operations";
    case OpClass::view:
    case OpClass::group:
    case OpClass::loop:
    case OpClass::branch:
    case OpClass::input:
    case OpClass::constant:
      return nullptr;
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> missing_parts(std::span<const Operator* const> operators, bool samples) {
  std::vector<std::string> missing;
  std::set<std::string_view> names;
  for (const Operator* op : operators) {
    const auto lacks = [&](std::string_view what) {
      missing.push_back(fmt::format("{} lacks {}", op->name, what));
    };
    if (op->name.empty()) lacks("a name");
    if (!names.insert(op->name).second) missing.push_back(fmt::format("{} is there twice", op->name));
    if (op->doc.empty()) lacks("a doc");
    // Inputs and constants are appended by Graph itself; a group gets its body from the pass that makes it.
    if (op->is_given() || op->op_class == OpClass::group) continue;
    if (!op->types) lacks("a type rule");
    if (const char* part = missing_meaning(*op)) lacks(part);
    // Autodiff differentiates bodies.
    const bool has_body = op->body || op->runs_body();
    if (op->differentiable && !op->gradient && !has_body) lacks("a gradient, or differentiable = false");
    if (op->samples.empty() && samples) lacks("samples");
    const bool keyed = std::any_of(op->attributes.begin(), op->attributes.end(),
                                   [](const AttributeSpec& spec) { return spec.name == "stream"; });
    if (op->random && (!keyed || op->max_operands == 0))
      lacks("a key, or the attribute stream, of its numbers");
    for (const AttributeSpec& spec : op->attributes) {
      if (spec.doc.empty()) lacks(fmt::format("a doc of attribute {}", spec.name));
      if (spec.fallback && !spec.fault(*spec.fallback).empty())
        lacks(fmt::format("a default within the range of attribute {}", spec.name));
    }
  }
  return missing;
}

}  // namespace millrace
