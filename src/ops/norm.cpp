#include "ops/norm.h"

#include "base/format.h"
#include "ops/axis.h"

namespace millrace::ops {

void check_parameter(const TypeContext& context, int index, std::string_view what, const Shape& shape) {
  const Type &x = context.operands[0], &given = context.operands[index];
  if (given.dtype != x.dtype && given.dtype != wide(x.dtype))
    context.error(fmt::format("{} must be {}{}", what, x.dtype.name(),
                              wide(x.dtype) == x.dtype ? "" : " or " + wide(x.dtype).name()));
  if (given.shape != shape) context.error(fmt::format("{} must have shape {}", what, shape.str()));
}

std::vector<Type> trailing_norm_types(const TypeContext& context) {
  const Type& x = context.operands[0];
  if (!x.dtype.is_float()) context.error("dtype is not supported");
  const int64_t axis = checked_axis(context, x.shape.rank());
  const Shape trailing(x.shape.begin() + axis, x.shape.end());
  for (size_t i = 1; i < context.operands.size(); ++i)
    check_parameter(context, static_cast<int>(i), i == 1 ? "the weight" : "the bias", trailing);
  return {x};
}

std::vector<Sample> trailing_norm_samples(int operands) {
  std::vector<Sample> samples;
  const auto add = [&](DType dtype, DType parameters, const Shape& x, int64_t axis, int count) {
    const Shape trailing(x.begin() + axis, x.end());
    Sample sample{.operands = {{dtype, x}}, .attributes = {{"axis", axis - x.rank()}}};
    for (int i = 1; i < count; ++i) sample.operands.push_back({parameters, trailing});
    samples.push_back(std::move(sample));
  };
  for (int count = 1; count <= operands; ++count) {
    add(f32, f32, {3, 33}, 1, count);
    add(f64, f64, {3, 5}, 1, count);
  }
  add(f32, f32, {2, 3, 4, 5}, 2, operands);
  add(f64, f64, {2, 3, 2}, 1, operands);
  add(f32, f32, {64}, 0, operands);
  add(f32, f32, {2, 1}, 1, operands);
  add(f32, f32, {0, 4}, 1, operands);
  add(bf16, bf16, {5, 24}, 1, operands);
  add(bf16, f32, {5, 24}, 1, operands);
  add(f16, f16, {3, 17}, 1, operands);
  return samples;
}

Normalised normalise(Build& b, Value x, const Attributes& attributes) {
  const auto axes = trailing_axes(attributes.integer("axis"), b.shape(x).rank());
  x = b.widen(x);
  // Two passes: the mean of squares minus the square of the mean would cancel.
  const Value centred = b.sub(x, b.mean(x, axes, true));
  const Value variance = b.mean(b.mul(centred, centred), axes, true);
  const Value scale = b.unary("rsqrt", b.add(variance, attributes.number("eps")));
  return {b.mul(centred, scale), scale};
}

Value per_channel(Build& b, Value vector, int rank) {
  Shape shape(rank - 1, Dim(1));
  shape[0] = b.shape(vector)[0];
  return b.reshape(vector, shape);
}

std::vector<int64_t> all_but_channels(int rank) {
  std::vector<int64_t> axes = {0};
  for (int64_t d = 2; d < rank; ++d) axes.push_back(d);
  return axes;
}

Shape channels_of(const TypeContext& context) {
  const Type& x = context.operands[0];
  if (!x.dtype.is_float()) context.error("dtype is not supported");
  if (x.shape.rank() < 2) context.error("x must have the dimensions [batch, channels, …]");
  return {x.shape[1]};
}

}  // namespace millrace::ops
