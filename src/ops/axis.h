// What operators along one axis share.
#pragma once

#include <millrace/operator.h>

namespace millrace::ops {

/// An axis, of which negative ones count from the end.
inline int64_t from_front(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }
/// The same, checked against `rank`.
int64_t checked_axis(const TypeContext& context, int64_t axis, int rank);
/// Of attribute `axis`.
int64_t axis_of(const Attributes& attributes, int rank);
int64_t checked_axis(const TypeContext& context, int rank);
/// axis, axis + 1 … rank − 1; from 0 on they are all.
std::vector<int64_t> trailing_axes(int64_t axis, int rank);

/// The shape of slices of `from` along an axis that indices of such a shape pick: they stand in its place.
Shape picked_shape(const Shape& from, int64_t axis, const Shape& indices);

/// Type rule: one float operand, whose type is the result's, and attribute `axis`.
std::vector<Type> float_type_with_axis(const TypeContext& context);

/// Shapes, dtypes and axes that such operators are tried on.
std::vector<Sample> axis_samples();

}  // namespace millrace::ops
