#include "ops/axis.h"

#include "base/format.h"

namespace millrace::ops {

int64_t checked_axis(const TypeContext& context, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) context.error(fmt::format("there is no axis {}", axis));
  return from_front(axis, rank);
}

int64_t axis_of(const Attributes& attributes, int rank) {
  return from_front(attributes.integer("axis"), rank);
}

int64_t checked_axis(const TypeContext& context, int rank) {
  return checked_axis(context, context.attributes.integer("axis"), rank);
}

std::vector<int64_t> trailing_axes(int64_t axis, int rank) {
  std::vector<int64_t> axes;
  for (int64_t d = from_front(axis, rank); d < rank; ++d) axes.push_back(d);
  return axes;
}

Shape picked_shape(const Shape& from, int64_t axis, const Shape& indices) {
  Shape shape(from.begin(), from.begin() + axis);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), from.begin() + axis + 1, from.end());
  return shape;
}

std::vector<Type> float_type_with_axis(const TypeContext& context) {
  if (!context.operands[0].dtype.is_float()) context.error("dtype is not supported");
  checked_axis(context, context.operands[0].shape.rank());
  return {context.operands[0]};
}

std::vector<Sample> axis_samples() {
  std::vector<Sample> samples = {{.operands = {{f32, {3, 17}}}},
                                 {.operands = {{f32, {2, 5, 33}}}, .attributes = {{"axis", int64_t{1}}}},
                                 {.operands = {{f32, {64}}}, .attributes = {{"axis", int64_t{0}}}},
                                 {.operands = {{f32, {4, 1}}}},
                                 {.operands = {{f32, {0, 4}}}},
                                 {.operands = {{f64, {3, 4}}}},
                                 {.operands = {{f64, {3, 4, 2}}}, .attributes = {{"axis", int64_t{-3}}}}};
  for (const DType dtype : {bf16, f16}) samples.push_back({.operands = {{dtype, {5, 9}}}});
  return samples;
}

}  // namespace millrace::ops
