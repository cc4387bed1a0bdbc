#include "passes/batch_steps.h"

#include <algorithm>

#include <millrace/operator.h>

#include "base/format.h"
#include "ir/values.h"
#include "ops/build.h"
#include "ops/matmul.h"
#include "ops/rows.h"
#include "passes/rules/axes.h"

namespace millrace {

bool StepBatcher::can_batch(const Graph& body, const Node& node, const std::vector<char>& stacked) {
  const Operator& op = *node.op;
  std::vector<char> operands;
  for (const Value& operand : node.operands) operands.push_back(stacked[operand.node]);
  if (std::count(operands.begin(), operands.end(), 0) == static_cast<int64_t>(operands.size())) return true;
  if (op.op_class == OpClass::elementwise || op.op_class == OpClass::reduction) return true;
  return op.stack && (!op.can_stack || op.can_stack(node, types_of(body, node.operands), operands));
}

Value StepBatcher::stack(Value body_value) {
  const Value value = emit(body_value);
  if (stacked(body_value)) return value;
  Shape all = body_.type(body_value).shape;
  all.insert(all.begin(), Dim(length_));
  return ops::Build(to_).broadcast(value, all);
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
  if (!map_.contains(body_value)) map_results(map_, body_, body_value.node, emit_node(body_value.node));
  return map_.at(body_value);
}

Value StepBatcher::emit_node(int index) {
  const Node& node = body_.node(index);
  to_.set_origin(node.origin);
  std::vector<Value> operands;
  if (!stacked_[index]) {
    for (const Value& operand : node.operands) operands.push_back(emit(operand));
    to_.set_origin(node.origin);
    return to_.add_copy(body_, index, std::move(operands));
  }
  if (node.op->op_class == OpClass::reduction) return reduction(node);
  if (node.op->stack) return by_rule(node);
  for (const Value& operand : node.operands) operands.push_back(stack(operand));
  to_.set_origin(node.origin);
  return to_.add(*node.op, operands, node.attributes);
}

Value StepBatcher::by_rule(const Node& node) {
  const std::vector<Type> types = types_of(body_, node.operands);
  StackContext context{to_, node, types, {}, length_, {}, {}};
  for (const Value& operand : node.operands) context.stacked.push_back(stacked(operand) ? 1 : 0);
  // Operands are emitted when the rule asks for them.
  context.value = [&](int k) {
    const Value value = emit(node.operands[k]);
    to_.set_origin(node.origin);
    return value;
  };
  context.stack = [&](int k) {
    const Value value = stack(node.operands[k]);
    to_.set_origin(node.origin);
    return value;
  };
  return node.op->stack(context);
}

bool StepBatcher::is_product_over_steps(const Node& node) const {
  const auto product = ops::matmul_of(node);
  return product && node.types[0].shape.rank() == 2 && product->transpose_a && !product->transpose_b &&
         stacked(node.operands[0]) && stacked(node.operands[1]);
}

bool StepBatcher::is_rounded_product(Value body_value) const {
  const Node& node = body_.node(body_value);
  if (has(body_value)) return false;
  if (node.op->converts) return node.types[0].dtype.is_float() && is_rounded_product(node.operands[0]);
  return is_product_over_steps(node);
}

Value StepBatcher::sum_over_steps(Value body_value) {
  const Node& node = body_.node(body_value);
  ops::Build b(to_);
  const Shape& shape = node.types[body_value.output].shape;
  if (!has(body_value)) {
    if (node.op->reshapes()) return b.reshape(sum_over_steps(node.operands[0]), shape);
    if (node.op->permutation)
      return b.transpose(sum_over_steps(node.operands[0]), node.op->permutation(node));
    // A product that is rounded (mixed precision): its sum is, once.
    if (node.op->converts && is_rounded_product(body_value)) {
      const Value product = sum_over_steps(node.operands[0]);
      to_.set_origin(node.origin);
      return to_.add(*node.op, {product}, node.attributes);
    }
    if (is_product_over_steps(node)) {
      const auto rows = [&](Value operand) {
        const Value all = emit(operand);
        const Shape& own = b.shape(all);
        return b.reshape(all, {own[0] * own[1], own[2]});
      };
      const Value left = rows(node.operands[0]), right = rows(node.operands[1]);
      to_.set_origin(node.origin);
      return b.matmul(left, right, true, false);
    }
    if (node.op->is(Reduction::sum) && stacked(node.operands[0])) {
      std::vector<int64_t> axes = axes_of(node, body_.type(node.operands[0]).shape.rank());
      for (int64_t& axis : axes) ++axis;
      const Value from = emit(node.operands[0]);
      to_.set_origin(node.origin);
      return b.reshape(b.sum(from, ops::prepended(axes, 0), false), shape);
    }
  }
  const Value all = emit(body_value);
  to_.set_origin(node.origin);
  return b.sum(all, {0}, false);
}

}  // namespace millrace
