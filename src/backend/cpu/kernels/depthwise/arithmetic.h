// The arithmetic of depthwise convolutions of channels-last pictures, once for each kind of CPU.
#pragma once

#include <cstdint>
#include <span>

namespace millrace::cpu::depthwise {

/// Some columns of one row of the result. The taps of the kernel come in rows: the columns of the picture
/// that a row meets are loaded once for all of its taps.
struct Strip {
  const void* const* in;  // [rows][places of the shape]: the pixels that a row meets
  int64_t rows;
  char* const* weights;  // of a row: its first tap's channels
  int64_t tap_step;      // bytes from one tap of a row to the next
  void* const* pixels;   // of the result, or of its gradient
  int64_t channels;
  int64_t ahead;  // bytes from the last row of the picture that is met to the one that will be met next
  int64_t next;   // bytes to the next row of the gradient
  /// Of the result: what each channel begins with, stored by blocks (null: 0), and its limits.
  const float* initial;
  float low, high;
};

/// Taps of a row, and columns of the picture from one result to the next.
struct TapShape {
  int taps, stride;
  constexpr int places(int columns) const { return (columns - 1) * stride + taps; }
};
/// The first is for all that the others do not fit: a row for each tap.
constexpr TapShape shapes[] = {{1, 1}, {2, 1}, {3, 1}, {5, 1}, {3, 2}, {5, 2}};
constexpr int shape_count = 6;
/// Columns of a strip. The pictures of ImageNet shrink to multiples of 7, small ones to powers of 2.
constexpr int widths[] = {7, 4, 1};
constexpr int width_count = 3;

struct Arithmetic {
  using Run = void (*)(const Strip&);
  const char* name;
  int lanes;
  /// Whether convolve takes weights of bf16, in order, where pixels are bf16: it multiplies two rows, or two
  /// neighbours, in one instruction. Else weights are f32, as their sums are.
  bool pairs;
  /// Channels go by blocks, as many as there are lanes, or twice as many of bf16; the last block begins so
  /// that it ends with the last channel. What is f32 is stored by such blocks: of bf16 the even channels,
  /// then the odd ones; where pairs are multiplied the first four of each eight, then the others.
  int64_t block(bool bf16) const { return bf16 ? 2 * lanes : lanes; }
  /// pixels = sums over taps of in · weights; at least a block of channels.
  Run convolve[2][shape_count][width_count];  // [bf16][shape][width]
  /// weights += sums over the 7 pixels of in · pixels.
  Run accumulate[2][shape_count];
  /// The same for fewer channels, with the first shape and blocks of one.
  Run convolve_few[2][width_count], accumulate_few[2];
};

/// Those that this CPU can run, the fastest first; there is always one.
std::span<const Arithmetic* const> arithmetics();

// One file each, compiled for that CPU.
const Arithmetic& arithmetic_bf16_avx512();
const Arithmetic& arithmetic_avx512();
const Arithmetic& arithmetic_avx2();
const Arithmetic& arithmetic_baseline();

}  // namespace millrace::cpu::depthwise
