// Floats of 8 bits and less: how their bits are meant.
#pragma once

#include <cstdint>

#include <millrace/narrow_types.h>

namespace millrace {

struct NarrowFloat {
  int exponent, mantissa, bias;  // widths, and what is taken from the exponent
  uint8_t largest;               // code of the largest number, without its sign
  uint8_t nan;                   // what NaN becomes; not a NaN where the type has none (e2m1)
  uint8_t infinity = 0;          // 0: has none
  bool one_zero = false;         // −0 is NaN
};

/// InternalError for other dtypes.
NarrowFloat narrow_float(DType dtype);

}  // namespace millrace
