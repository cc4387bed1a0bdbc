#include <millrace/onnx_rule.h>

#include "ops/axis.h"
#include "ops/build.h"
#include "ops/onnx_where.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

std::vector<Type> gather_types(const TypeContext& c) {
  const Type &x = c.operands[0], &indices = c.operands[1];
  if (indices.dtype != i64 && indices.dtype != i32) c.error("the indices must be i64 or i32");
  return {{x.dtype, ops::picked_shape(x.shape, ops::checked_axis(c, x.shape.rank()), indices.shape)}};
}

Scalar gather_element(ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
  const Type &x = c.operands[0], &indices = c.operands[1];
  const int64_t axis = ops::axis_of(c.node.attributes, x.shape.rank());
  const int rank = indices.shape.rank();
  Scalar picked = b.load(1, index.subspan(axis, rank));
  if (indices.dtype != i64) picked = b.cast(picked, i64);
  const Scalar inside = b.both(b.binary(ScalarOp::greater_equal, picked, b.integer(i64, 0)),
                               b.less(picked, b.integer(i64, x.shape[axis].size())));
  std::vector<Scalar> at(index.begin(), index.begin() + axis);
  at.push_back(picked);
  at.insert(at.end(), index.begin() + axis + rank, index.end());
  return b.load_if(inside, 0, at, b.constant(x.dtype, 0));
}

/// Whether indices are what ONNX would make of them: those that compare with 0 are counted from the end, as
/// importing writes it.
bool counts_from_end(const Graph& graph, Value indices) {
  const Node& choice = graph.node(indices);
  if (!choice.op->chooses) return false;
  const Value plain = choice.operands[2];
  const Node &compared = graph.node(choice.operands[0]), &moved = graph.node(choice.operands[1]);
  const auto is_of_plain = [&](const Node& node) {
    return node.op->op_class == OpClass::elementwise && node.operands.size() == 2 &&
           node.operands[0] == plain;
  };
  if (!is_of_plain(compared) || !is_of_plain(moved)) return false;
  Value limit = compared.operands[1];
  while (graph.node(limit).op->broadcasts) limit = graph.node(limit).operands[0];
  const Array* const known = graph.constant_value(limit);
  return known && known->count() == 1 && known->at(0) == 0;
}

bool all_inside(const Array* indices, const Dim& size) {
  if (!indices || !size.is_static()) return false;
  for (int64_t i = 0; i < indices->count(); ++i)
    if (indices->int_at(i) < 0 || indices->int_at(i) >= size.size()) return false;
  return true;
}

/// ONNX counts indices below 0 from the end and forbids those behind it. Who gives a model its indices means
/// that; what a graph computes may mean the zeros.
std::vector<std::string> as_onnx(const OnnxCall& c) {
  const Type &x = c.types[0], &indices = c.types[1];
  const int axis = ops::axis_of(c.attributes(), x.shape.rank());
  const OnnxAttributes along = {{"axis", static_cast<int64_t>(axis)}};
  const Value at = c.node.operands[1];
  if (c.graph.is_input(at) || counts_from_end(c.graph, at) || all_inside(c.values[1], x.shape[axis]))
    return c.one("Gather", c.operands, along);
  const auto number = [&](double value) { return c.onnx.constant(Array::scalar(indices.dtype, value)); };
  std::string size = c.onnx.node("Squeeze", {c.onnx.shape_of({x.shape[axis]}), c.onnx.ints({0})});
  if (indices.dtype != i64) size = c.onnx.node("Cast", {size}, {{"to", c.onnx.data_type(indices.dtype)}});
  const std::string inside =
      c.onnx.node("And", {c.onnx.node("Not", {c.onnx.node("Less", {c.operands[1], number(0)})}),
                          c.onnx.node("Less", {c.operands[1], size})});
  const std::string some = c.onnx.node("Where", {inside, c.operands[1], number(0)});
  const std::string taken = c.onnx.node("Gather", {c.operands[0], some}, along);
  std::vector<int64_t> behind;
  for (int d = axis + 1; d < x.shape.rank(); ++d) behind.push_back(indices.shape.rank() + d - axis - 1);
  const std::string there = behind.empty() ? inside : c.onnx.node("Unsqueeze", {inside, c.onnx.ints(behind)});
  return {ops::onnx_where(c.onnx, there, taken, c.scalar(0), x.dtype)};
}

}  // namespace

MILLRACE_OPERATOR(gather) {
  Operator op;
  op.name = "gather";
  op.op_class = OpClass::movement;
  op.doc =
      "Slices of the first operand along `axis`, picked by the indices: the axis is replaced by the indices' "
      "shape. An "
      "index outside the axis, negative ones included, gives zeros: the transpose of scatter_add, which "
      "drops it.";
  op.min_operands = op.max_operands = 2;
  op.attributes = {{"axis", Attribute(int64_t{0}), "the axis that is indexed; negative counts from the end"}};
  op.types = gather_types;
  op.element = gather_element;
  op.touches = [](const Graph&, const Node& node, bool) {
    const int64_t taken = node.types[0].shape.count();
    return Touched{taken, taken};
  };
  op.gradient = [](const GradientContext& c) {
    ops::Build b(c.graph);
    const Value base = b.zeros(c.operands[0]);
    return std::vector<Value>{c.graph.add("scatter_add", {base, c.operands[1], c.result_gradients[0]},
                                          {{"axis", ops::axis_of(c.node.attributes, b.shape(base).rank())}}),
                              {}};
  };
  op.keeps_axis = [](const Node& node, std::span<const Type> operands, int operand, int axis) {
    const auto picked = static_cast<int>(ops::axis_of(node.attributes, operands[0].shape.rank()));
    if (operand == 1) return picked + axis;
    if (axis == picked) return -1;
    return axis < picked ? axis : axis - 1 + operands[1].shape.rank();
  };
  for (const DType dtype : all_dtypes()) op.samples.push_back({.operands = {{dtype, {6, 5}}, {i64, {9}}}});
  const auto sample = [&](const Type& x, const Type& indices, int64_t axis, int64_t low = 0) {
    op.samples.push_back({.operands = {x, indices}, .attributes = {{"axis", axis}}, .int_low = low});
  };
  sample({f64, {2, 6, 3}}, {i32, {3, 5}}, 1);
  sample({f32, {3, 4}}, {i64, {7}}, -1, -2);
  sample({f32, {6}}, {i64, {}}, 0);
  sample({f32, {6, 2}}, {i64, {0}}, 0);
  sample({f32, {1, 33}}, {i32, {2}}, 0);
  op.samples.push_back({.operands = {{f32, {3}}, {i64, {5}}}, .values = {{1, {0, -1, 2, 3, 1e15}}}});
  op.onnx = {"Gather"};
  op.onnx_rule = as_onnx;
  return op;
}
