#include "base/format.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(unique) {
  Operator op;
  op.name = "unique";
  op.op_class = OpClass::heavy;
  op.doc =
      "The different ones of the first `count` (i64 []) rows of a matrix [n, width], in ascending order of "
      "their elements from the first on, or with `sorted` false as they come; NaNs are equal, and behind all "
      "numbers. Gives i64 [n] each: the first row that each is, and how many are equal to it, both 0 behind "
      "the last one; of each row its number among them, 0 of rows that do not count; and i64 [], how many "
      "there are.";
  op.min_operands = op.max_operands = 2;
  op.attributes = {{"sorted", Attribute(true), "in ascending order, not as they come"}};
  op.types = [](const TypeContext& c) {
    const Type& rows = c.operands[0];
    if (rows.dtype != f32 && rows.dtype != f64 && rows.dtype != i64 && rows.dtype != u64)
      c.error("the rows must be f32, f64, i64 or u64");
    if (rows.shape.rank() != 2 || !rows.shape.is_static())
      c.error(fmt::format("the rows {} must be [n, width], of known sizes", rows.shape.str()));
    if (c.operands[1] != Type{i64, {}}) c.error("how many rows count must be an i64 []");
    const Type list{i64, {rows.shape[0]}};
    return std::vector<Type>{list, list, list, {i64, {}}};
  };
  op.differentiable = false;
  op.errors = ErrorGrowth::decisive;
  op.flops = [](const Graph&, const Node&) { return 0.0; };  // comparisons
  const auto sample = [&](const Type& rows, double count, std::vector<double> values = {}) {
    for (const bool sorted : {true, false}) {
      Sample each{
          .operands = {rows, {i64, {}}}, .attributes = {{"sorted", sorted}}, .values = {{1, {count}}}};
      if (!values.empty()) each.values[0] = values;
      op.samples.push_back(each);
    }
  };
  sample({i64, {40, 1}}, 40);
  sample({i64, {60, 2}}, 50);
  sample({u64, {9, 1}}, 9);
  sample({f64, {7, 3}}, 7);
  sample({f32, {1, 1}}, 1);
  sample({f32, {0, 1}}, 0);
  sample({f32, {4, 0}}, 4);
  sample({i64, {5, 1}}, 0);
  sample({f32, {8, 1}}, 8, {-0.0, 0, NAN, -3, -NAN, INFINITY, -INFINITY, 2});
  sample({f64, {4, 2}}, 4, {1, NAN, 1, 2, 1, NAN, -1, 5});
  sample({i64, {4, 1}}, 4, {-1, 3, -5, -1});
  return op;
}
