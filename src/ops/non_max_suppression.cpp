#include "base/format.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

std::vector<Type> suppression_types(const TypeContext& c) {
  const Type &corners = c.operands[0], &scores = c.operands[1], &candidates = c.operands[2];
  if (corners.dtype != f32 || scores.dtype != f32) c.error("corners and scores must be f32");
  if (!candidates.dtype.is_bool() || candidates.shape != scores.shape)
    c.error("the candidates must be bool, of the shape of the scores");
  const Shape& s = scores.shape;
  if (s.rank() != 3 || !s.is_static() || corners.shape != Shape{4, s[0], s[2]})
    c.error(fmt::format("scores {} must be [batch, classes, boxes], and corners {} [4, batch, boxes]",
                        s.str(), corners.shape.str()));
  if (c.operands[3] != Type{f32, {}} || c.operands[4] != Type{i64, {}})
    c.error("the share must be an f32 [], and how many are kept an i64 []");
  const Shape& most = c.attributes.shape("most");
  if (most.rank() != 1 || !most.is_static()) c.error("`most` must be one known size");
  return {{i64, {s[0].size() * s[1].size() * most[0].size(), 3}}, {i64, {}}};
}

}  // namespace

MILLRACE_OPERATOR(non_max_suppression) {
  Operator op;
  op.name = "non_max_suppression";
  op.op_class = OpClass::heavy;
  op.doc =
      "Of each class [batch, classes] the candidates [.., boxes] from the highest score [.., boxes] on (of "
      "equal scores the first one; NaN last), without those that share more of what both cover than `share` "
      "(f32 []) with one that is kept, until so many (i64 []) are. Corners [4, batch, boxes]: top, left, "
      "bottom, right. Gives i64 [batch * classes * most, 3], (batch, class, box) of each one that is kept, "
      "then 0; and i64 [], how many these are.";
  op.min_operands = op.max_operands = 5;
  op.attributes = {{"most", AttributeType::shape, "boxes that are kept of a class at most, [n]"}};
  op.types = suppression_types;
  op.differentiable = false;
  op.errors = ErrorGrowth::decisive;
  op.flops = [](const Graph& graph, const Node& node) {
    return static_cast<double>(graph.type(node.operands[1]).shape.count()) * 12;
  };
  const auto sample = [&](int64_t batch, int64_t classes, int64_t boxes, int64_t most, int64_t kept,
                          double share) {
    op.samples.push_back({.operands = {{f32, {4, batch, boxes}},
                                       {f32, {batch, classes, boxes}},
                                       {boolean, {batch, classes, boxes}},
                                       {f32, {}},
                                       {i64, {}}},
                          .attributes = {{"most", Shape{most}}},
                          .values = {{3, {share}}, {4, {static_cast<double>(kept)}}}});
  };
  sample(1, 1, 1, 1, 1, 0.5);
  sample(1, 1, 40, 40, 40, 0.1);
  sample(2, 3, 33, 5, 9, 0.3);
  sample(3, 1, 300, 60, 50, 0);
  sample(1, 2, 20, 30, 30, -1);
  sample(1, 2, 9, 4, 0, 0.5);
  sample(2, 2, 0, 3, 3, 0.5);
  sample(0, 2, 5, 3, 3, 0.5);
  sample(1, 2, 5, 0, 3, 0.5);
  op.samples.push_back(
      {.operands = {{f32, {4, 1, 5}}, {f32, {1, 1, 5}}, {boolean, {1, 1, 5}}, {f32, {}}, {i64, {}}},
       .attributes = {{"most", Shape{5}}},
       .values = {{0, {0, 0, 0, 10, 10, 0, 0.1, 20, 10, 10, 1, 1, 1, 11, 12, 1, 1.1, 21, 11, 11}},
                  {1, {0.5, 0.5, NAN, 0.5, 0.75}},
                  {2, {1, 1, 1, 1, 1}},
                  {3, {0.5}},
                  {4, {5}}},
       .note = "equal scores, and one that is none"});
  return op;
}
