#include <millrace/narrow_types.h>

#include "base/format.h"
#include "ops/axis.h"
#include "ops/build.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

std::vector<Type> scatter_rows_types(const TypeContext& c) {
  const Type &base = c.operands[0], &indices = c.operands[1], &rows = c.operands[2];
  if (indices.dtype != i64 && indices.dtype != i32) c.error("the indices must be i64 or i32");
  if (base.dtype != rows.dtype) c.error("base and rows must have the same dtype");
  if (base.shape.rank() < 1) c.error("the base must have rows");
  const Shape expected = ops::picked_shape(base.shape, 0, indices.shape);
  if (rows.shape != expected) c.error(fmt::format("the rows must have shape {}", expected.str()));
  return {base};
}

/// Only the first of equal indices wrote anything.
std::vector<Value> scatter_rows_gradient(const GradientContext& c) {
  ops::Build b(c.graph);
  const Value g = c.result_gradients[0], indices = c.operands[1], rows = c.operands[2];
  const Value kept = c.graph.add("scatter_rows", {g, indices, b.zeros(rows)});
  const int64_t count = b.shape(indices).count();
  Shape column{count};
  while (column.rank() < b.shape(g).rank()) column.push_back(1);
  const Value own = c.graph.add("iota", {}, {{"shape", Shape{count}}, {"axis", int64_t{0}}, {"dtype", i32}});
  const Value first = c.graph.add("first_occurrence", {b.reshape(indices, Shape{count})});
  const Value wrote = b.binary("equal", first, own);
  Shape flat{count};
  flat.insert(flat.end(), b.shape(g).begin() + 1, b.shape(g).end());
  const Value taken = b.reshape(c.graph.add("gather", {g, indices}, {{"axis", int64_t{0}}}), flat);
  const Value mask = b.broadcast(b.reshape(wrote, column), flat);
  return {kept, {}, b.reshape(b.select(mask, taken, b.zeros(taken)), b.shape(rows))};
}

}  // namespace

MILLRACE_OPERATOR(scatter_rows) {
  Operator op;
  op.name = "scatter_rows";
  op.op_class = OpClass::heavy;
  op.doc =
      "The base with the slices along its first axis that the indices name replaced by `rows`. Of equal "
      "indices the "
      "first "
      "counts; an index outside the axis, negative ones included, is passed over.";
  op.min_operands = op.max_operands = 3;
  op.types = scatter_rows_types;
  op.gradient = scatter_rows_gradient;
  op.flops = [](const Graph&, const Node&) { return 0.0; };  // it moves
  op.touches = [](const Graph& graph, const Node& node, bool in_place) {
    const int64_t all = node.types[0].shape.count();
    return in_place ? Touched{0, graph.type(node.operands[2]).shape.count()} : Touched{all, all};
  };
  op.samples = {{.operands = {{f32, {5, 3}}, {i64, {7}}, {f32, {7, 3}}}, .int_low = -1, .int_high = 6},
                {.operands = {{f32, {40}}, {i32, {2, 4}}, {f32, {2, 4}}}},
                {.operands = {{f64, {6, 2, 2}}, {i64, {3}}, {f64, {3, 2, 2}}}},
                {.operands = {{f32, {6, 2}}, {i64, {}}, {f32, {2}}}},
                {.operands = {{f32, {6, 2}}, {i64, {0}}, {f32, {0, 2}}}},
                {.operands = {{f32, {1, 1}}, {i64, {1}}, {f32, {1, 1}}}, .int_high = 0},
                {.operands = {{bf16, {6, 5}}, {i64, {9}}, {bf16, {9, 5}}}},
                {.operands = {{f16, {6, 5}}, {i64, {3}}, {f16, {3, 5}}}},
                {.operands = {{f32, {20000, 33}}, {i64, {50}}, {f32, {50, 33}}},
                 .int_high = 25000,
                 .check_gradient = false}};
  for (const DType dtype : {boolean, i8, u8, i16, u16, i32, u32, i64, u64})
    op.samples.push_back({.operands = {{dtype, {6, 2}}, {i64, {3}}, {dtype, {3, 2}}}});
  return op;
}
