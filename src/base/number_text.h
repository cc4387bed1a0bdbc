// Measured numbers as people read them.
#pragma once

#include <cmath>
#include <string>

#include "base/format.h"

namespace millrace {

/// At least five digits that say something, and no more than four decimals: "0.1235", "1.2346e-07", "251000".
/// "-" of none (NaN). `like`: a number whose decimals it is to have, as those of an interval have its
/// value's.
inline std::string number_text(double value, double like) {
  if (std::isnan(value)) return "-";
  const double size = std::abs(like);
  const bool usual = size == 0 || (size >= 0.001 && size < 1e15);
  if (!usual || !std::isfinite(value) || std::abs(value) >= 1e15) return fmt::format("{:.5g}", value);
  return fmt::format("{:.{}f}", value, size < 1000 ? 4 : size < 1e5 ? 2 : 0);
}
inline std::string number_text(double value) { return number_text(value, value); }

}  // namespace millrace
