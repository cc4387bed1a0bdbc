// Element types beside those of millrace/type.h: integers of other widths, and floats of 8 bits and less,
// which are stored, moved and converted, but not computed with.
#pragma once

#include <millrace/type.h>

namespace millrace {

/// Kinds of floats by their exponent's and mantissa's bits (OCP's and the "fnuz" ones; e8m0 is a power of
/// two, e2m1 has 4 bits in all). What has fewer than 8 bits is stored in a byte (signed integers with their
/// sign in all of it).
inline constexpr Kind e4m3fn{5}, e4m3fnuz{6}, e5m2{7}, e5m2fnuz{8}, e8m0{9}, e2m1{10};

inline constexpr DType i16{Kind::signed_int, 16}, u16{Kind::unsigned_int, 16}, i4{Kind::signed_int, 4},
    u4{Kind::unsigned_int, 4}, i2{Kind::signed_int, 2}, u2{Kind::unsigned_int, 2}, f8e4m3fn{e4m3fn, 8},
    f8e4m3fnuz{e4m3fnuz, 8}, f8e5m2{e5m2, 8}, f8e5m2fnuz{e5m2fnuz, 8}, f8e8m0{e8m0, 8}, f4e2m1{e2m1, 4};

/// A float of 8 bits or less. DType::is_float() is false for it: operators that compute with floats do not
/// take it.
inline bool is_narrow_float(DType dtype) { return dtype.kind > Kind::brain_floating; }
/// A number that may have a fraction, whatever its width.
inline bool is_real(DType dtype) { return dtype.is_float() || is_narrow_float(dtype); }
/// Stored, moved and converted, but not computed with.
inline bool is_only_stored(DType dtype) {
  return is_narrow_float(dtype) || (dtype.is_int() && dtype.bits < 8);
}
/// A type that few operators take.
inline bool is_rare(DType dtype) {
  return is_only_stored(dtype) || dtype == i16 || (dtype.kind == Kind::unsigned_int && dtype.bits > 8);
}

/// Bit conversions, round to nearest even. Numbers saturate (e8m0 rounds up and knows no sign).
float narrow_to_float(DType dtype, uint8_t bits);
uint8_t float_to_narrow(DType dtype, float value);

}  // namespace millrace
