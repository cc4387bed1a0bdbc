#include <algorithm>
#include <limits>

#include <millrace/onnx_rule.h>

#include "ops/axis.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

std::vector<Type> concat_types(const TypeContext& c) {
  Type result = c.operands[0];
  const int64_t axis = ops::checked_axis(c, result.shape.rank());
  int64_t total = 0;
  for (const Type& operand : c.operands) {
    Shape other = operand.shape;
    if (operand.dtype != result.dtype || other.rank() != result.shape.rank())
      c.error("operands must have one dtype and rank");
    if (!other[axis].is_static()) c.error("the axis that is joined must have a known size");
    if (__builtin_add_overflow(total, other[axis].size(), &total)) c.error("the result is too large");
    other[axis] = result.shape[axis];
    if (other != result.shape) c.error("operands may differ only along the axis that is joined");
  }
  if (c.operands.size() > 1) result.shape[axis] = total;
  return {result};
}

/// Loads from each operand where the index falls into its part, the last one unconditionally.
Scalar concat_element(ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
  const int64_t axis = ops::axis_of(c.node.attributes, static_cast<int>(index.size()));
  int64_t end = c.node.types[0].shape[axis].size();
  Scalar value = b.constant(c.operands[0].dtype, 0);
  for (size_t k = c.operands.size(); k-- > 0;) {
    const int64_t size = c.operands[k].shape[axis].size(), start = end - size;
    std::vector<Scalar> at(index.begin(), index.end());
    at[axis] = b.sub(index[axis], b.integer(i64, start));
    const Scalar inside = b.both(b.binary(ScalarOp::greater_equal, index[axis], b.integer(i64, start)),
                                 b.less(index[axis], b.integer(i64, end)));
    if (size > 0) value = b.load_if(inside, static_cast<int>(k), at, value);
    end = start;
  }
  return value;
}

std::vector<Value> concat_gradient(const GradientContext& c) {
  const int rank = c.node.types[0].shape.rank();
  const int64_t axis = ops::axis_of(c.node.attributes, rank);
  std::vector<int64_t> starts(rank, 0), ends(rank, std::numeric_limits<int64_t>::max());
  std::vector<Value> parts;
  for (const Value& operand : c.operands) {
    ends[axis] = starts[axis] + c.type(operand).shape[axis].size();
    parts.push_back(c.graph.add("slice", {c.result_gradients[0]}, {{"starts", starts}, {"ends", ends}}));
    starts[axis] = ends[axis];
  }
  return parts;
}

}  // namespace

MILLRACE_OPERATOR(concat) {
  Operator op;
  op.name = "concat";
  op.op_class = OpClass::movement;
  op.doc = "The operands joined along `axis`; all other dimensions are equal.";
  op.max_operands = -1;
  op.attributes = {{"axis", AttributeType::integer, "the axis; negative counts from the end"}};
  op.types = concat_types;
  op.element = concat_element;
  op.gradient = concat_gradient;
  for (const DType dtype : all_dtypes())
    op.samples.push_back({.operands = {{dtype, {2, 9}}, {dtype, {2, 3}}, {dtype, {2, 5}}},
                          .attributes = {{"axis", int64_t{1}}}});
  op.samples.push_back({.operands = {{f64, {1, 3}}, {f64, {4, 3}}}, .attributes = {{"axis", int64_t{-2}}}});
  op.samples.push_back(
      {.operands = {{f32, {0}}, {f32, {3}}, {f32, {0}}}, .attributes = {{"axis", int64_t{0}}}});
  op.samples.push_back({.operands = {{f32, {3, 2}}}, .attributes = {{"axis", int64_t{0}}}});
  op.samples.push_back({.operands = {{f32, {0}}, {f32, {0}}}, .attributes = {{"axis", int64_t{0}}}});
  op.unchanged = true;
  op.stack = [](const StackContext& c) {
    std::vector<Value> parts;
    for (size_t k = 0; k < c.types.size(); ++k) parts.push_back(c.stack(static_cast<int>(k)));
    const int64_t axis = c.node.attributes.integer("axis");
    return c.graph.add(*c.node.op, parts, {{"axis", axis < 0 ? axis : axis + 1}});
  };
  op.keeps_axis = [](const Node& node, std::span<const Type>, int, int axis) {
    return ops::axis_of(node.attributes, node.types[0].shape.rank()) == axis ? -1 : axis;
  };
  op.seams = [](const ElementContext& c, int dim) {
    std::vector<int64_t> seams;
    if (ops::axis_of(c.node.attributes, c.node.types[0].shape.rank()) != dim) return seams;
    int64_t end = 0;
    for (const Type& operand : c.operands) seams.push_back(end += operand.shape[dim].size());
    return seams;
  };
  op.onnx = {"Concat"};
  op.onnx_rule = [](const OnnxCall& c) {
    return c.one("Concat", c.operands, {{"axis", c.attributes().integer("axis")}});
  };
  return op;
}
