#include "ops/registry.h"

using namespace millrace;

MILLRACE_OPERATOR(iota) {
  Operator op;
  op.name = "iota";
  op.op_class = OpClass::generator;
  op.doc = "0, 1, 2 … along `axis`, the same along all others.";
  op.min_operands = op.max_operands = 0;
  op.attributes = {{"shape", std::nullopt, "the result's shape"},
                   {"axis", Attribute(int64_t{0}), "the axis that is counted; negative counts from the end"},
                   {"dtype", Attribute(i64), "the result's dtype"}};
  op.differentiable = false;
  op.types = [](const TypeContext& c) {
    const Shape& shape = c.attributes.shape("shape");
    const int64_t axis = c.attributes.integer("axis");
    if (axis < -shape.rank() || axis >= shape.rank()) c.error("axis out of range");
    if (c.attributes.dtype("dtype").is_bool()) c.error("dtype is not supported");
    return std::vector<Type>{{c.attributes.dtype("dtype"), shape}};
  };
  op.element = [](ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
    const int64_t axis = c.node.attributes.integer("axis");
    return b.cast(index[axis < 0 ? axis + index.size() : axis], c.node.types[0].dtype);
  };
  for (const DType dtype : all_dtypes())
    if (!dtype.is_bool()) op.samples.push_back({.attributes = {{"shape", Shape{19}}, {"dtype", dtype}}});
  op.samples.push_back({.attributes = {{"shape", Shape{3, 5, 2}}, {"axis", int64_t{1}}}});
  op.samples.push_back({.attributes = {{"shape", Shape{4, 33}}, {"axis", int64_t{-1}}, {"dtype", f32}}});
  for (const int64_t count : {0, 1}) op.samples.push_back({.attributes = {{"shape", Shape{count}}}});
  op.samples.push_back({.attributes = {{"shape", Shape{300}}, {"dtype", u8}}, .note = "wraps"});
  return op;
}
