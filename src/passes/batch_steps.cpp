#include "passes/batch_steps.h"

#include <algorithm>
#include <limits>

#include <millrace/operator.h>

#include "base/format.h"
#include "ops/build.h"

namespace millrace {
namespace {

constexpr int64_t to_end = std::numeric_limits<int64_t>::max();

std::vector<int64_t> prepended(std::vector<int64_t> list, int64_t first) {
  list.insert(list.begin(), first);
  return list;
}

/// The axes of a reduction, not negative; all when none are given.
std::vector<int64_t> axes_of(const Node& node, int rank) {
  std::vector<int64_t> axes = node.attributes.ints("axes");
  for (int64_t& axis : axes)
    if (axis < 0) axis += rank;
  if (axes.empty())
    for (int d = 0; d < rank; ++d) axes.push_back(d);
  return axes;
}

}  // namespace

bool StepBatcher::can_batch(const Graph& body, const Node& node, const std::vector<char>& stacked) {
  const bool any = std::any_of(node.operands.begin(), node.operands.end(),
                               [&](const Value& operand) { return stacked[operand.node] != 0; });
  if (node.op->name == "input") return true;
  if (!any) return true;
  const std::string_view name = node.op->name;
  if (name == "matmul") {
    const bool a = stacked[node.operands[0].node] != 0, b = stacked[node.operands[1].node] != 0;
    return (a && b) ||
           (a && body.type(node.operands[0]).shape.rank() == 2 && !node.attributes.flag("transpose_a"));
  }
  return node.op->op_class == OpClass::elementwise || node.op->op_class == OpClass::reduction ||
         name == "broadcast" || name == "reshape" || name == "transpose" || name == "slice" ||
         name == "pad" || name == "concat";
}

Shape StepBatcher::with_steps(const Shape& shape) const {
  Shape all = shape;
  all.insert(all.begin(), Dim(length_));
  return all;
}

Value StepBatcher::stack(Value body_value) {
  const Value value = emit(body_value);
  return stacked(body_value) ? value
                             : ops::Build(to_).broadcast(value, with_steps(body_.type(body_value).shape));
}

Value StepBatcher::matmul(const Node& node) {
  ops::Build b(to_);
  const bool ta = node.attributes.flag("transpose_a"), tb = node.attributes.flag("transpose_b");
  const Value left = emit(node.operands[0]), right = emit(node.operands[1]);
  if (stacked(node.operands[1])) return b.matmul(left, right, ta, tb);
  // One product of the rows of all steps.
  const Shape& from = b.shape(left);
  const Value rows = b.matmul(b.reshape(left, {from[0] * from[1], from[2]}), right, false, tb);
  return b.reshape(rows, with_steps(node.types[0].shape));
}

Value StepBatcher::reduction(const Node& node) {
  std::vector<int64_t> axes = axes_of(node, body_.type(node.operands[0]).shape.rank());
  const Value from = emit(node.operands[0]);
  for (int64_t& axis : axes) ++axis;
  // A reduction over no axes means all of them: one of a single number is that number.
  if (axes.empty()) {
    const Value one = ops::Build(to_).reshape(from, {length_, 1});
    return to_.add(*node.op, {one}, {{"axes", std::vector<int64_t>{1}}});
  }
  return to_.add(*node.op, {from}, {{"axes", axes}, {"keep_dims", node.attributes.flag("keep_dims")}});
}

Value StepBatcher::emit(Value body_value) {
  if (!map_.contains(body_value)) {
    const Value first = emit_node(body_value.node);
    for (size_t r = 0; r < body_.node(body_value).types.size(); ++r) {
      const auto result = static_cast<int32_t>(r);
      map_[{body_value.node, result}] = {first.node, first.output + result};
    }
  }
  return map_.at(body_value);
}

Value StepBatcher::emit_node(int index) {
  const Node& node = body_.node(index);
  const std::string_view name = node.op->name;
  ops::Build b(to_);
  to_.set_location(node.location);
  std::vector<Value> operands;
  if (!stacked_[index]) {
    for (const Value& operand : node.operands) operands.push_back(emit(operand));
    to_.set_location(node.location);
    return node.body && !node.op->body ? to_.add_with_body(*node.op, operands, node.attributes, node.body)
                                       : to_.add(*node.op, operands, node.attributes);
  }
  if (name == "matmul") return matmul(node);
  if (node.op->op_class == OpClass::reduction) return reduction(node);
  for (const Value& operand : node.operands) operands.push_back(stack(operand));
  to_.set_location(node.location);
  if (name == "broadcast") {
    // Dimensions of size 1 where the operand has fewer.
    Shape from = body_.type(node.operands[0]).shape;
    from.insert(from.begin(), node.types[0].shape.size() - from.size(), Dim(1));
    return b.broadcast(b.reshape(operands[0], with_steps(from)), with_steps(node.types[0].shape));
  }
  if (name == "reshape") return b.reshape(operands[0], with_steps(node.types[0].shape));
  Attributes attributes = node.attributes;
  if (name == "transpose") {
    std::vector<int64_t> permutation = attributes.ints("permutation");
    for (int64_t& axis : permutation) ++axis;
    attributes.set("permutation", prepended(permutation, 0));
  } else if (name == "slice") {
    attributes.set("starts", prepended(attributes.ints("starts"), 0));
    attributes.set("ends", prepended(attributes.ints("ends"), to_end));
    if (!attributes.ints("steps").empty()) attributes.set("steps", prepended(attributes.ints("steps"), 1));
  } else if (name == "pad") {
    for (const char* list : {"low", "high", "interior"})
      if (!attributes.ints(list).empty()) attributes.set(list, prepended(attributes.ints(list), 0));
  } else if (name == "concat") {
    const int64_t axis = attributes.integer("axis");
    attributes.set("axis", axis < 0 ? axis : axis + 1);
  }
  return to_.add(*node.op, operands, attributes);
}

bool StepBatcher::is_product_over_steps(const Node& node) const {
  return node.op->name == "matmul" && node.types[0].shape.rank() == 2 &&
         node.attributes.flag("transpose_a") && !node.attributes.flag("transpose_b") &&
         stacked(node.operands[0]) && stacked(node.operands[1]);
}

bool StepBatcher::is_rounded_product(Value body_value) const {
  const Node& node = body_.node(body_value);
  if (has(body_value)) return false;
  if (node.op->name == "cast") return node.types[0].dtype.is_float() && is_rounded_product(node.operands[0]);
  return is_product_over_steps(node);
}

std::optional<Value> StepBatcher::product_over_steps(const Node& node) {
  if (!is_product_over_steps(node)) return std::nullopt;
  ops::Build b(to_);
  const auto rows = [&](Value operand) {
    const Value all = emit(operand);
    const Shape& shape = b.shape(all);
    return b.reshape(all, {shape[0] * shape[1], shape[2]});
  };
  const Value left = rows(node.operands[0]), right = rows(node.operands[1]);
  to_.set_location(node.location);
  return b.matmul(left, right, true, false);
}

Value StepBatcher::sum_over_steps(Value body_value) {
  const Node& node = body_.node(body_value);
  ops::Build b(to_);
  const Shape& shape = node.types[body_value.output].shape;
  const bool known = has(body_value);
  if (!known && node.op->name == "reshape") return b.reshape(sum_over_steps(node.operands[0]), shape);
  if (!known && node.op->name == "transpose")
    return b.transpose(sum_over_steps(node.operands[0]), node.attributes.ints("permutation"));
  // A product that is rounded (mixed precision): its sum is, once.
  if (!known && node.op->name == "cast" && is_rounded_product(body_value)) {
    const Value product = sum_over_steps(node.operands[0]);
    to_.set_location(node.location);
    return to_.add(*node.op, {product}, node.attributes);
  }
  if (!known)
    if (const auto product = product_over_steps(node)) return *product;
  if (!known && node.op->name == "sum" && stacked(node.operands[0])) {
    std::vector<int64_t> axes = axes_of(node, body_.type(node.operands[0]).shape.rank());
    for (int64_t& axis : axes) ++axis;
    const Value from = emit(node.operands[0]);
    to_.set_location(node.location);
    return b.reshape(b.sum(from, prepended(axes, 0), false), shape);
  }
  const Value all = emit(body_value);
  to_.set_location(node.location);
  return b.sum(all, {0}, false);
}

}  // namespace millrace
