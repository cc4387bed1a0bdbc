// What integer dtypes hold of numbers.
#pragma once

#include <cmath>
#include <cstdint>

#include <millrace/type.h>

namespace millrace {

/// The whole part of a number, the least or the largest where it lies beyond these; 0 for NaN.
inline int64_t saturated(DType dtype, double value) {
  if (std::isnan(value)) return 0;
  const int spare = 64 - dtype.bits;
  if (dtype.kind == Kind::unsigned_int) {
    const uint64_t most = UINT64_MAX >> spare;
    if (value <= 0) return 0;
    return static_cast<int64_t>(value >= static_cast<double>(most) ? most : static_cast<uint64_t>(value));
  }
  const int64_t least = INT64_MIN >> spare, most = INT64_MAX >> spare;
  if (value <= static_cast<double>(least)) return least;
  return value >= static_cast<double>(most) ? most : static_cast<int64_t>(value);
}

/// The lower bits, those above as the sign says.
inline int64_t wrapped(DType dtype, int64_t value) {
  const int spare = 64 - dtype.bits;
  const uint64_t upper = static_cast<uint64_t>(value) << spare;
  return dtype.kind == Kind::signed_int ? static_cast<int64_t>(upper) >> spare
                                        : static_cast<int64_t>(upper >> spare);
}

}  // namespace millrace
