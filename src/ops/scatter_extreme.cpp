#include "base/format.h"
#include "ops/build.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

std::vector<Type> scatter_extreme_types(const TypeContext& c) {
  const Type &base = c.operands[0], &indices = c.operands[1], &updates = c.operands[2];
  if (indices.dtype != i64) c.error("the indices must be i64");
  if (base.dtype != updates.dtype || base.dtype.is_bool())
    c.error("base and updates must have the same number dtype");
  if (base.shape.rank() != 1 || indices.shape.rank() != 1 || updates.shape != indices.shape)
    c.error(
        fmt::format("base {} must be a list, and indices and updates lists of one length", base.shape.str()));
  return {base};
}

/// Equal extremes share it, as those of a reduction do.
std::vector<Value> scatter_extreme_gradient(const GradientContext& c) {
  ops::Build b(c.graph);
  const Value base = c.operands[0], at = c.operands[1], updates = c.operands[2], y = c.results[0];
  const auto there = [&](Value x) { return c.graph.add("gather", {x, at}, {{"axis", int64_t{0}}}); };
  const auto hits = [&](Value x, Value extreme) { return b.cast(b.binary("equal", x, extreme), b.dtype(x)); };
  const Value own = hits(base, y), theirs = hits(updates, there(y));
  const Value count = c.graph.add("scatter_add", {own, at, theirs}, {{"axis", int64_t{0}}});
  const Value share = b.div(c.result_gradients[0], count);
  return {b.mul(own, share), {}, b.mul(theirs, there(share))};
}

}  // namespace

MILLRACE_OPERATOR(scatter_extreme) {
  Operator op;
  op.name = "scatter_extreme";
  op.op_class = OpClass::heavy;
  op.doc =
      "The largest (or with `least` the smallest) of each element of a base [n] and the updates [m] whose "
      "index [m] is its own; NaN where one is NaN. An index outside the base changes nothing.";
  op.min_operands = op.max_operands = 3;
  op.attributes = {{"least", Attribute(false), "the smallest"}};
  op.types = scatter_extreme_types;
  op.gradient = scatter_extreme_gradient;
  op.flops = [](const Graph& graph, const Node& node) {
    return static_cast<double>(graph.type(node.operands[2]).shape.count());
  };
  op.touches = [](const Graph& graph, const Node& node, bool in_place) {
    const int64_t count = (in_place ? graph.type(node.operands[2]) : node.types[0]).shape.count();
    return Touched{count, count};
  };
  const auto sample = [&](DType dtype, int64_t size, int64_t many, bool least) {
    op.samples.push_back({.operands = {{dtype, {size}}, {i64, {many}}, {dtype, {many}}},
                          .attributes = {{"least", least}},
                          .int_low = -1,
                          .int_high = 6});
  };
  for (const bool least : {false, true})
    for (const DType dtype : {f32, f64, i64, i32, i8, u8}) sample(dtype, 6, 20, least);
  sample(bf16, 5, 9, false);
  sample(f16, 5, 9, true);
  sample(f32, 1, 1, false);
  sample(f32, 7, 0, false);
  sample(f32, 0, 3, false);
  op.samples.push_back({.operands = {{f32, {3}}, {i64, {4}}, {f32, {4}}},
                        .values = {{0, {1, 2, NAN}}, {1, {0, 0, 1, 2}}, {2, {NAN, 3, 5, 1}}},
                        .check_gradient = false,
                        .note = "numbers that are none"});
  return op;
}
