#include "ops/reduce.h"

#include <algorithm>

#include <millrace/narrow_types.h>
#include <millrace/onnx_rule.h>

#include "ops/axis.h"
#include "ops/build.h"

namespace millrace::ops {
namespace {

/// Axes made non-negative, sorted and checked against `rank`; an empty list means all axes.
std::vector<int64_t> normalise_axes(const std::vector<int64_t>& axes, int rank, const TypeContext& context) {
  std::vector<int64_t> out = axes.empty() ? trailing_axes(0, rank) : axes;
  for (int64_t& axis : out) axis = checked_axis(context, axis, rank);
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end()) context.error("an axis is given twice");
  return out;
}

}  // namespace

Shape kept_shape(const Shape& shape, const std::vector<int64_t>& axes) {
  Shape kept = shape;
  for (int64_t axis : axes) kept[from_front(axis, shape.rank())] = 1;
  if (axes.empty())
    for (Dim& dim : kept) dim = 1;
  return kept;
}

Operator reduction_operator(std::string_view name, std::string_view doc, Reduction reduction,
                            std::vector<DType> dtypes) {
  Operator op;
  op.name = name;
  op.doc = doc;
  op.op_class = OpClass::reduction;
  op.reduction = reduction;
  op.attributes = {{"axes", Attribute(std::vector<int64_t>{}), "axes to reduce; empty: all"},
                   {"keep_dims", Attribute(false), "keep reduced axes with size 1"}};
  const bool position = reduction == Reduction::argmax || reduction == Reduction::argmin;
  op.types = [dtypes, position](const TypeContext& c) {
    const Type& operand = c.operands[0];
    if (std::find(dtypes.begin(), dtypes.end(), operand.dtype) == dtypes.end())
      c.error("dtype is not supported");
    const auto axes = normalise_axes(c.attributes.ints("axes"), operand.shape.rank(), c);
    if (position && axes.size() != 1) c.error("exactly one axis is needed");
    if (position && operand.shape[axes[0]] == 0) c.error("there is no position on an axis of size 0");
    Shape shape;
    for (int d = 0; d < operand.shape.rank(); ++d) {
      if (!std::binary_search(axes.begin(), axes.end(), d))
        shape.push_back(operand.shape[d]);
      else if (c.attributes.flag("keep_dims"))
        shape.push_back(1);
    }
    return std::vector<Type>{{position ? i64 : operand.dtype, shape}};
  };
  return op;
}

namespace {

std::vector<DType> ordered() { return {f32, f64, bf16, f16, i8, u8, i16, u16, i32, u32, i64, u64}; }

/// Shared evenly among equal extremes.
std::vector<Value> extreme_gradient(const GradientContext& c) {
  Build b(c.graph);
  const Value x = c.operands[0];
  const Shape shape = b.shape(x), kept = kept_shape(shape, c.node.attributes.ints("axes"));
  const Value y = b.reshape(c.results[0], kept), g = b.reshape(c.result_gradients[0], kept);
  const Value hits = b.cast(b.binary("equal", x, b.broadcast(y, shape)), b.dtype(x));
  const Value share = b.div(g, b.reshape(b.sum(hits, c.node.attributes.ints("axes"), false), kept));
  return {b.mul(hits, b.broadcast(share, shape))};
}

/// The axes of a reduction, all when none are given.
std::vector<int64_t> onnx_axes(const OnnxCall& c) {
  const std::vector<int64_t>& axes = c.attributes().ints("axes");
  return axes.empty() ? trailing_axes(0, c.types[0].shape.rank()) : axes;
}

}  // namespace

std::function<std::vector<std::string>(const OnnxCall&)> onnx_reduction(const std::string& type,
                                                                        int axes_given_since) {
  return [type, axes_given_since](const OnnxCall& c) {
    const int64_t keep = c.attributes().flag("keep_dims");
    const std::vector<int64_t> axes = onnx_axes(c);
    if (axes.empty()) return c.one("Identity", c.operands);
    if (c.onnx.opset() >= axes_given_since)
      return c.one(type, {c.operands[0], c.onnx.ints(axes)}, {{"keepdims", keep}});
    return c.one(type, c.operands, {{"axes", axes}, {"keepdims", keep}});
  };
}

std::vector<Sample> reduction_samples(const std::vector<DType>& dtypes) {
  using Ints = std::vector<int64_t>;
  std::vector<Sample> samples;
  for (const DType dtype : dtypes)
    samples.push_back({.operands = {{dtype, {9, 33}}}, .attributes = {{"axes", Ints{1}}}});
  samples.push_back({.operands = {{f32, {3, 40, 5}}}, .attributes = {{"axes", Ints{1}}}});
  samples.push_back({.operands = {{f64, {3, 40}}}, .attributes = {{"axes", Ints{-1}}, {"keep_dims", true}}});
  samples.push_back({.operands = {{f32, {70, 3}}}, .attributes = {{"axes", Ints{0}}}});
  samples.push_back(
      {.operands = {{f32, {2, 5, 3, 4}}}, .attributes = {{"axes", Ints{0, 2}}, {"keep_dims", true}}});
  samples.push_back({.operands = {{f32, {2, 5, 3, 4}}}, .attributes = {{"axes", Ints{3, 1}}}});
  samples.push_back(
      {.operands = {{f32, {0, 3}}}, .attributes = {{"axes", Ints{0}}}, .check_gradient = false});
  samples.push_back({.operands = {{f32, {0, 3}}}, .attributes = {{"axes", Ints{1}}}});
  samples.push_back({.operands = {{f32, {}}}});
  samples.push_back({.operands = {{f32, {1}}}});
  samples.push_back({.operands = {{f32, {5, 7}}}});
  return samples;
}

namespace {

std::vector<Sample> position_samples() {
  using Ints = std::vector<int64_t>;
  std::vector<Sample> samples;
  for (const DType dtype : ordered())
    samples.push_back({.operands = {{dtype, {9, 33}}}, .attributes = {{"axes", Ints{1}}}});
  samples.push_back(
      {.operands = {{f32, {3, 40, 5}}}, .attributes = {{"axes", Ints{-2}}, {"keep_dims", true}}});
  samples.push_back({.operands = {{i32, {70, 3}}}, .attributes = {{"axes", Ints{0}}}, .note = "ties"});
  samples.push_back({.operands = {{f32, {0, 3}}}, .attributes = {{"axes", Ints{1}}}});
  samples.push_back({.operands = {{f32, {1}}}, .attributes = {{"axes", Ints{0}}}});
  return samples;
}

}  // namespace

Operator extreme_reduction(std::string_view name, std::string_view doc, Reduction reduction,
                           std::string_view onnx) {
  Operator op = reduction_operator(name, doc, reduction, ordered());
  op.gradient = extreme_gradient;
  op.samples = reduction_samples(ordered());
  op.onnx = {onnx};
  op.onnx_rule = onnx_reduction(std::string(onnx), 18);
  return op;
}

Operator position_reduction(std::string_view name, std::string_view doc, Reduction reduction,
                            std::string_view onnx) {
  Operator op = reduction_operator(name, doc, reduction, ordered());
  op.differentiable = false;
  op.samples = position_samples();
  op.onnx = {onnx};
  op.onnx_rule = [type = std::string(onnx)](const OnnxCall& c) {
    const int64_t keep = c.attributes().flag("keep_dims");
    return c.one(type, c.operands, {{"axis", onnx_axes(c)[0]}, {"keepdims", keep}});
  };
  return op;
}

}  // namespace millrace::ops
