#include <millrace/onnx_rule.h>

#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(one_hot) {
  Operator op;
  op.name = "one_hot";
  op.op_class = OpClass::movement;
  op.doc =
      "A new last axis of size `depth` with 1 at the index and 0 elsewhere; all 0 where the index is outside "
      "[0, depth).";
  op.attributes = {{"depth", AttributeType::integer, "size of the new axis", {.low = 0}},
                   {"dtype", Attribute(f32), "the result's dtype"}};
  op.differentiable = false;
  op.types = [](const TypeContext& c) {
    if (c.operands[0].dtype != i64 && c.operands[0].dtype != i32) c.error("the indices must be i64 or i32");
    Type result{c.attributes.dtype("dtype"), c.operands[0].shape};
    result.shape.push_back(c.attributes.integer("depth"));
    return std::vector<Type>{result};
  };
  op.element = [](ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
    const Scalar picked = b.cast(b.load(0, index.first(index.size() - 1)), i64);
    return b.cast(b.equal(picked, index.back()), c.node.types[0].dtype);
  };
  op.onnx = {"Equal"};
  // ONNX's OneHot counts negative indices from the end.
  op.onnx_rule = [](const OnnxCall& c) {
    Array classes(c.types[0].dtype, {c.attributes().integer("depth")});
    for (int64_t i = 0; i < classes.count(); ++i) classes.set_int(i, i);
    const std::string column = c.onnx.node("Unsqueeze", {c.operands[0], c.onnx.ints({-1})});
    return c.one("Cast", {c.onnx.node("Equal", {column, c.onnx.constant(classes)})},
                 {{"to", c.onnx.data_type(c.attributes().dtype("dtype"))}});
  };
  for (const DType dtype : ops::computed_dtypes())
    op.samples.push_back(
        {.operands = {{i64, {7}}}, .attributes = {{"depth", int64_t{5}}, {"dtype", dtype}}, .int_low = -1});
  op.samples.push_back({.operands = {{i32, {2, 3}}}, .attributes = {{"depth", int64_t{17}}}});
  op.samples.push_back({.operands = {{i64, {1}}}, .attributes = {{"depth", int64_t{1}}}, .int_high = 1});
  op.samples.push_back({.operands = {{i64, {}}}, .attributes = {{"depth", int64_t{3}}}});
  op.samples.push_back({.operands = {{i64, {4}}}, .attributes = {{"depth", int64_t{0}}}});
  op.samples.push_back({.operands = {{i64, {0}}}, .attributes = {{"depth", int64_t{3}}}});
  return op;
}
