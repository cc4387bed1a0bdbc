// The inner loops of warp() and rotate, compiled once for each kind of CPU; all give the same bytes.
#pragma once

#include <cstdint>

namespace millrace::data {

/// `in` and `out`: planes of one size, which do not overlap.
struct WarpLoops {
  /// Bilinear in double. `from`: a Projection's eight numbers.
  void (*warp)(const uint8_t* in, int channels, int height, int width, const double* from, uint8_t fill,
               uint8_t* out);
  /// Turned about the centre, edges continued; bilinear in steps of 1/256 pixel. Cosine and sine in 1/65536.
  void (*turn)(const uint8_t* in, int channels, int height, int width, int64_t cosine, int64_t sine,
               uint8_t* out);
};
const WarpLoops& warp_loops_baseline();
const WarpLoops& warp_loops_avx2();
const WarpLoops& warp_loops_avx512();
/// The best that this CPU has.
const WarpLoops& warp_loops();

}  // namespace millrace::data
