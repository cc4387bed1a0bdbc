// The beginning of an array along one of its axes.
#pragma once

#include <cstdint>

#include <millrace/array.h>

namespace millrace {

/// The type of `size` positions along an axis of a type.
Type first_along(const Type& type, int axis, int64_t size);
/// Fills `to` with the first positions of `from` along an axis: types differ in that size alone, which is not
/// larger in `to`.
void copy_first_along(const Array& from, int axis, Array& to);
/// The first `size` positions along an axis, or as many as there are.
Array first_along(const Array& array, int axis, int64_t size);

}  // namespace millrace
