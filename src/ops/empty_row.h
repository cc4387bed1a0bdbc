// Softmax of rows in which nothing may be left.
#pragma once

#include <limits>

#include "ops/build.h"

namespace millrace::ops {

/// The highest numbers of rows, f32 or f64, with the lowest number there is in place of −∞: −∞ less it stays
/// −∞, whose exponential is 0. Rows that a mask of finite numbers fills are not empty.
inline Value finite_highest(Build& b, Value highest) {
  const double lowest =
      b.dtype(highest) == f64 ? std::numeric_limits<double>::lowest() : std::numeric_limits<float>::lowest();
  return b.binary("maximum", highest, b.fill(highest, lowest));
}

}  // namespace millrace::ops
