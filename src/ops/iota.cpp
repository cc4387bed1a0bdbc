#include <millrace/onnx_rule.h>

#include "base/format.h"
#include "ops/axis.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

using namespace millrace;

namespace {

/// By ONNX's Range, which counts in one dimension only.
std::vector<std::string> as_range(const OnnxCall& c) {
  const Type& type = c.node.types[0];
  const int axis = ops::axis_of(c.attributes(), type.shape.rank());
  const auto scalar = [&](int64_t number) {
    Array array(i64, {});
    array.set_int(0, number);
    return c.onnx.constant(array);
  };
  const std::string size = c.onnx.node("Squeeze", {c.onnx.shape_of({type.shape[axis]}), c.onnx.ints({0})});
  const std::string count = c.onnx.node("Range", {scalar(0), size, scalar(1)});
  std::vector<int64_t> along(type.shape.size(), 1);
  along[axis] = -1;
  const std::string placed = c.onnx.node("Reshape", {count, c.onnx.ints(along)});
  const std::string whole = c.onnx.node("Expand", {placed, c.onnx.shape_of(type.shape)});
  return c.one("Cast", {whole}, {{"to", c.onnx.data_type(type.dtype)}});
}

/// Of known sizes it is a constant.
std::vector<std::string> as_onnx(const OnnxCall& c) {
  const Type& type = c.node.types[0];
  if (!type.shape.is_static()) return as_range(c);
  const auto counted = static_cast<size_t>(ops::axis_of(c.attributes(), type.shape.rank()));
  int64_t inner = 1;
  for (size_t d = counted + 1; d < type.shape.size(); ++d) inner *= type.shape[d].size();
  Array values(type);
  for (int64_t i = 0; i < values.count(); ++i)
    values.set(i, static_cast<double>(i / inner % type.shape[counted].size()));
  return {c.onnx.constant(values)};
}

}  // namespace

MILLRACE_OPERATOR(iota) {
  Operator op;
  op.name = "iota";
  op.op_class = OpClass::generator;
  op.doc = "0, 1, 2 … along `axis`, the same along all others.";
  op.min_operands = op.max_operands = 0;
  op.attributes = {{"shape", AttributeType::shape, "the result's shape"},
                   {"axis", Attribute(int64_t{0}), "the axis that is counted; negative counts from the end"},
                   {"dtype", Attribute(i64), "the result's dtype"}};
  op.differentiable = false;
  op.types = [](const TypeContext& c) {
    const Shape& shape = c.attributes.shape("shape");
    ops::checked_axis(c, shape.rank());
    if (c.attributes.dtype("dtype").is_bool()) c.error("dtype is not supported");
    return std::vector<Type>{{c.attributes.dtype("dtype"), shape}};
  };
  op.element = [](ElementBuilder& b, std::span<const Scalar> index, const ElementContext& c) {
    const int64_t axis = ops::axis_of(c.node.attributes, static_cast<int>(index.size()));
    return b.cast(index[axis], c.node.types[0].dtype);
  };
  for (const DType dtype : ops::computed_dtypes())
    if (!dtype.is_bool()) op.samples.push_back({.attributes = {{"shape", Shape{19}}, {"dtype", dtype}}});
  op.samples.push_back({.attributes = {{"shape", Shape{3, 5, 2}}, {"axis", int64_t{1}}}});
  op.samples.push_back({.attributes = {{"shape", Shape{4, 33}}, {"axis", int64_t{-1}}, {"dtype", f32}}});
  for (const int64_t count : {0, 1}) op.samples.push_back({.attributes = {{"shape", Shape{count}}}});
  op.samples.push_back({.attributes = {{"shape", Shape{300}}, {"dtype", u8}}, .note = "wraps"});
  op.repeat = Repeat::free;
  op.onnx_rule = as_onnx;
  return op;
}
