// Floats of 8 bits and less beside values of the Python package ml_dtypes 0.6, and integers of other widths.
#include "ir/narrow_float.h"

#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <utility>
#include <vector>

#include <millrace/array.h>

using namespace millrace;

namespace {

const std::vector<DType> kNarrow{f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0, f4e2m1};

}  // namespace

TEST_CASE("each code of a narrow float is the number that becomes it") {
  for (const DType dtype : kNarrow)
    for (int code = 0; code < 1 << dtype.bits; ++code) {
      CAPTURE(dtype.name());
      CAPTURE(code);
      const float value = narrow_to_float(dtype, static_cast<uint8_t>(code));
      if (std::isnan(value))
        CHECK(std::isnan(narrow_to_float(dtype, float_to_narrow(dtype, value))));
      else
        CHECK(float_to_narrow(dtype, value) == code);
    }
}

TEST_CASE("narrow floats round to the nearest even, saturate, and keep what is no number where they can") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const std::vector<std::pair<DType, std::vector<std::pair<float, int>>>> known = {
      {f8e4m3fn,
       {{448, 0x7E},
        {464, 0x7E},
        {465, 0x7E},
        {1e-9F, 0},
        {-0.0F, 0x80},
        {0.0009765625F, 0},
        {0.00146F, 1},
        {1.0625F, 0x38},
        {1.1875F, 0x3A},
        {-1.0625F, 0xB8},
        {inf, 0x7E},
        {-inf, 0xFE}}},
      {f8e4m3fnuz, {{240, 0x7F}, {249, 0x7F}, {-0.0F, 0}, {-1e-9F, 0}, {0.5F, 0x38}, {inf, 0x7F}}},
      {f8e5m2,
       {{57344, 0x7B},
        {61440, 0x7B},
        {inf, 0x7C},
        {-inf, 0xFC},
        {1.125F, 0x3C},
        {1.375F, 0x3E},
        {7.6293945e-06F, 0}}},
      {f8e5m2fnuz, {{57344, 0x7F}, {-0.0F, 0}, {1, 0x40}}},
      {f8e8m0, {{1, 127}, {1.1F, 128}, {0.25F, 125}, {0, 0}, {3e38F, 254}, {inf, 255}}},
      {f4e2m1, {{0.25F, 0}, {0.75F, 2}, {1.75F, 4}, {5, 6}, {7, 7}, {-7, 15}, {-0.1F, 8}, {inf, 7}}}};
  for (const auto& [dtype, pairs] : known)
    for (const auto& [value, code] : pairs) {
      CAPTURE(dtype.name());
      CAPTURE(value);
      CHECK(float_to_narrow(dtype, value) == code);
    }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [dtype, code] :
       {std::pair{f8e4m3fn, 0x7F}, {f8e4m3fnuz, 0x80}, {f8e5m2, 0x7E}, {f8e8m0, 0xFF}, {f4e2m1, 8}})
    CHECK(float_to_narrow(dtype, nan) == code);
}

TEST_CASE("integers of any width saturate where numbers are set, and wrap where integers are") {
  struct Case {
    DType dtype;
    double low, high;
    int64_t wraps;  // what 1000003 becomes
  };
  for (const Case& c : {Case{i2, -2, 1, -1},
                        {u2, 0, 3, 3},
                        {i4, -8, 7, 3},
                        {u4, 0, 15, 3},
                        {i16, -32768, 32767, 16963},
                        {u16, 0, 65535, 16963},
                        {u32, 0, 4294967295.0, 1000003}}) {
    CAPTURE(c.dtype.name());
    Array array(c.dtype, {1});
    array.set(0, -1e12);
    CHECK(array.at(0) == c.low);
    array.set(0, 1e12);
    CHECK(array.at(0) == c.high);
    array.set_int(0, 1000003);
    CHECK(array.int_at(0) == c.wraps);
  }
  Array wide(u64, {1});
  wide.set(0, 0x1p63);
  CHECK(wide.at(0) == 0x1p63);
  CHECK(wide.as<uint64_t>()[0] == uint64_t{1} << 63);
  wide.set(0, -1);
  CHECK(wide.int_at(0) == 0);
}
