#include "ir/narrow_float.h"

#include <bit>
#include <cmath>

#include "base/format.h"

namespace millrace {

NarrowFloat narrow_float(DType dtype) {
  if (dtype == f8e4m3fn) return {.exponent = 4, .mantissa = 3, .bias = 7, .largest = 0x7E, .nan = 0x7F};
  if (dtype == f8e4m3fnuz)
    return {.exponent = 4, .mantissa = 3, .bias = 8, .largest = 0x7F, .nan = 0x80, .one_zero = true};
  if (dtype == f8e5m2)
    return {.exponent = 5, .mantissa = 2, .bias = 15, .largest = 0x7B, .nan = 0x7E, .infinity = 0x7C};
  if (dtype == f8e5m2fnuz)
    return {.exponent = 5, .mantissa = 2, .bias = 16, .largest = 0x7F, .nan = 0x80, .one_zero = true};
  if (dtype == f8e8m0) return {.exponent = 8, .mantissa = 0, .bias = 127, .largest = 0xFE, .nan = 0xFF};
  if (dtype == f4e2m1) return {.exponent = 2, .mantissa = 1, .bias = 1, .largest = 0x7, .nan = 0x8};
  fail<InternalError>("{} is no float of 8 bits or less", dtype.name());
}

float narrow_to_float(DType dtype, uint8_t bits) {
  const NarrowFloat f = narrow_float(dtype);
  if (dtype == f8e8m0) return bits == f.nan ? std::nanf("") : std::ldexp(1.0F, bits - f.bias);
  if (f.one_zero && bits == f.nan) return std::nanf("");
  const int sign = bits >> (f.exponent + f.mantissa) & 1;
  const int code = bits & ((1 << (f.exponent + f.mantissa)) - 1);
  if (!f.one_zero && code > f.largest)
    return code == f.infinity ? (sign ? -INFINITY : INFINITY) : std::nanf("");
  const int exponent = code >> f.mantissa, mantissa = code & ((1 << f.mantissa) - 1);
  const float value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), 1 - f.bias - f.mantissa)
                                    : std::ldexp(static_cast<float>(mantissa + (1 << f.mantissa)),
                                                 exponent - f.bias - f.mantissa);
  return sign ? -value : value;
}

uint8_t float_to_narrow(DType dtype, float value) {
  const NarrowFloat f = narrow_float(dtype);
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7FFFFFFF;
  if (dtype == f8e8m0) {
    if (magnitude >= 0x7F800000) return f.nan;
    if (magnitude <= 0x00400000) return 0;  // 2^−127 and less
    const uint32_t up = (magnitude >> 23) + ((magnitude & 0x7FFFFF) != 0 ? 1 : 0);
    return static_cast<uint8_t>(up > f.largest ? f.largest : up);
  }
  if (magnitude > 0x7F800000) return f.nan;
  uint32_t code = f.infinity != 0 ? f.infinity : f.largest;  // of infinity
  const int shift = 23 - f.mantissa;
  const uint32_t least_normal = static_cast<uint32_t>(128 - f.bias) << 23;  // 2^(1 − bias)
  if (magnitude < least_normal) {
    code = static_cast<uint32_t>(
        std::nearbyint(std::ldexp(std::bit_cast<float>(magnitude), f.bias - 1 + f.mantissa)));
  } else if (magnitude < 0x7F800000) {
    const uint32_t even = (magnitude >> shift) & 1;
    code = ((magnitude + (1U << (shift - 1)) - 1 + even) >> shift) -
           (static_cast<uint32_t>(127 - f.bias) << f.mantissa);
    if (code > f.largest) code = f.largest;
  }
  if (code == 0 && f.one_zero) return 0;
  return static_cast<uint8_t>(code | (bits >> 31) << (f.exponent + f.mantissa));
}

}  // namespace millrace
