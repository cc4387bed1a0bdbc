// What operators along one axis share.
#pragma once

#include <millrace/operator.h>

namespace millrace::ops {

/// Attribute `axis`, made non-negative and checked against `rank`.
int64_t checked_axis(const TypeContext& context, int rank);

/// Type rule: one float operand, whose type is the result's, and attribute `axis`.
std::vector<Type> float_type_with_axis(const TypeContext& context);

/// Shapes, dtypes and axes that such operators are tried on.
std::vector<Sample> axis_samples();

}  // namespace millrace::ops
