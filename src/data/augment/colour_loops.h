// The inner loops of colour changes, compiled once for each kind of CPU; all give the same bytes.
// colour_loops_baseline.cpp says plainly what they compute: the arithmetic of Pillow.
#pragma once

#include <cstdint>

namespace millrace::data {

/// Values are changed in place unless there is an `out`; `count` may be anything, and nothing beyond it is
/// touched.
struct ColourLoops {
  /// The entries of `table` (256 of them) that the values name. `in` may be `out`.
  void (*look_up)(const uint8_t* table, const uint8_t* in, int64_t count, uint8_t* out);
  /// The sum of the luma (ITU-R BT.601, rounded) of three planes.
  uint64_t (*luma_sum)(const uint8_t* const* rgb, int64_t count);
  /// From luma (0) over the colour (1) and on.
  void (*saturate)(uint8_t* const* rgb, int64_t count, float factor);
  /// Hue + shift of 256, through 8-bit HSV.
  void (*turn_hue)(uint8_t* const* rgb, int64_t count, int shift);
  /// From the smoothed picture (0) over the picture (1) and on. `at`: the first of the pixels before the
  /// change, all of them with neighbours; rows are `stride` apart.
  void (*sharpen)(const uint8_t* at, int64_t stride, int64_t count, float factor, uint8_t* out);
  void (*extremes)(const uint8_t* values, int64_t count, uint8_t* least, uint8_t* most);
};
const ColourLoops& colour_loops_baseline();
const ColourLoops& colour_loops_avx2();
const ColourLoops& colour_loops_avx512();
/// The best that this CPU has.
const ColourLoops& colour_loops();

}  // namespace millrace::data
