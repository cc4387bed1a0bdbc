#include "ops/scatter_add.h"

#include "base/format.h"
#include "ops/axis.h"
#include "ops/filled.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

std::vector<Type> scatter_add_types(const TypeContext& c) {
  const Type &base = c.operands[0], &indices = c.operands[1], &updates = c.operands[2];
  if (indices.dtype != i64 && indices.dtype != i32) c.error("the indices must be i64 or i32");
  if (base.dtype != updates.dtype || base.dtype.is_bool())
    c.error("base and updates must have the same number dtype");
  const Shape expected =
      ops::picked_shape(base.shape, ops::checked_axis(c, base.shape.rank()), indices.shape);
  if (updates.shape != expected) c.error(fmt::format("the updates must have shape {}", expected.str()));
  return {base};
}

}  // namespace

MILLRACE_OPERATOR(scatter_add) {
  Operator op;
  op.name = "scatter_add";
  op.op_class = OpClass::heavy;
  op.doc =
      "The base with every slice of `updates` added at its index along `axis`; the gradient of gather(base, "
      "indices). "
      "Updates of one index are added in their order. An index outside the axis adds nothing.";
  op.min_operands = op.max_operands = 3;
  op.attributes = {{"axis", Attribute(int64_t{0}), "the axis of the base that is indexed"}};
  op.types = scatter_add_types;
  op.gradient = [](const GradientContext& c) {
    const Value g = c.result_gradients[0];
    return std::vector<Value>{
        g, {}, c.graph.add("gather", {g, c.operands[1]}, {{"axis", c.node.attributes.integer("axis")}})};
  };
  op.flops = [](const Graph& graph, const Node& node) {
    return static_cast<double>(graph.type(node.operands[2]).shape.count());
  };
  op.touches = [](const Graph& graph, const Node& node, bool in_place) {
    const int64_t count = (in_place ? graph.type(node.operands[2]) : node.types[0]).shape.count();
    return Touched{count, count};
  };
  op.samples = {
      {.operands = {{f32, {5, 3}}, {i64, {7}}, {f32, {7, 3}}}, .int_high = 4},
      {.operands = {{f32, {6}}, {i32, {2, 4}}, {f32, {2, 4}}}},
      {.operands = {{f32, {3, 6, 2}}, {i64, {4}}, {f32, {3, 4, 2}}}, .attributes = {{"axis", int64_t{1}}}},
      {.operands = {{f32, {6, 2}}, {i64, {}}, {f32, {2}}}},
      {.operands = {{f32, {6, 2}}, {i64, {0}}, {f32, {0, 2}}}},
      {.operands = {{f64, {2, 6}}, {i64, {3, 3}}, {f64, {2, 3, 3}}}, .attributes = {{"axis", int64_t{-1}}}},
      {.operands = {{bf16, {6, 5}}, {i64, {9}}, {bf16, {9, 5}}}},
      {.operands = {{f16, {6, 5}}, {i64, {3}}, {f16, {3, 5}}}},
      {.operands = {{i64, {6}}, {i64, {9}}, {i64, {9}}}},
      {.operands = {{f32, {1, 1}}, {i64, {1}}, {f32, {1, 1}}}, .int_high = 0},
      {.operands = {{f32, {0, 2}}, {i64, {3}}, {f32, {3, 2}}}}};
  for (const DType dtype : {i8, u8, i32})
    op.samples.push_back({.operands = {{dtype, {6, 2}}, {i64, {3}}, {dtype, {3, 2}}}});
  return op;
}

std::optional<ops::RowSum> ops::row_sum(const Graph& graph, Value value) {
  const Node& node = graph.node(value);
  if (node.op != &op_scatter_add() || node.attributes.integer("axis") != 0 ||
      !is_filled_with(graph, node.operands[0], 0))
    return std::nullopt;
  return RowSum{node.operands[1], node.operands[2]};
}
