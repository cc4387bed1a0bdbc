// The inner loops of resampling, compiled once for each kind of CPU; all give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::cpu {

/// Fractional bits of weights: eight are for the value, two for the overshoot of other filters.
constexpr int kWeightBits = 32 - 8 - 2;

/// The inner loops for one kind of CPU. `slack`: so many bytes behind what they read and write.
struct ResizeLoops {
  static constexpr size_t slack = 64;
  /// One row across: `out` gets `count` pixels of `channels`; writes and reads up to `slack` bytes further.
  void (*across)(const uint8_t* row, int channels, const int* first, const int* taps, const int32_t* weights,
                 int width, int count, uint8_t* out);
  /// One row down: `bytes` sums over `taps` rows; writes and reads up to `slack` bytes further.
  void (*down)(const uint8_t* rows, int64_t stride, const int32_t* weights, int taps, int64_t bytes,
               uint8_t* out);
  /// Three channels apart; reads up to `slack` bytes further.
  void (*apart)(const uint8_t* pixels, int64_t count, uint8_t* red, uint8_t* green, uint8_t* blue);
  /// Three channels together.
  void (*together)(const uint8_t* red, const uint8_t* green, const uint8_t* blue, int64_t count,
                   uint8_t* pixels);
  /// The bytes the other way round.
  void (*turned)(const uint8_t* in, int64_t count, uint8_t* out);
};
const ResizeLoops& resize_loops_baseline();
const ResizeLoops& resize_loops_avx2();
const ResizeLoops& resize_loops_avx512();
/// The best that this CPU has.
const ResizeLoops& resize_loops();

}  // namespace millrace::cpu
