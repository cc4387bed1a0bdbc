// Separable resampling with the triangle filter, in fixed point: the arithmetic of Pillow's Resample.c, across first and
// then down, so the bytes are those of Image.resize(BILINEAR), on any CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/pictures/frame.h"

namespace millrace::data {

/// For every position of the result the first position of the source, and the weights from there on.
struct ResizeTable {
  int width = 0;  // weights of one position, a multiple of four; those that do not count are 0
  std::vector<int> first, count;
  std::vector<int32_t> weights;
  /// True when every position is taken as it is.
  bool same = false;

  /// Places keep_from … + keep of `out` places made of the stretch from `start` to `end` in a row of `in` pixels. Memory is
  /// reused.
  void make(int in, double start, double end, int out, int keep_from, int keep);
};

/// Resizes frames of pictures. Keeps its memory: one for each thread.
class Resampler {
 public:
  /// The next run() is of this frame, of a picture that is `reduction` (1, 2, 4, 8) times smaller than the frame thinks.
  void plan(const Frame& frame, int reduction = 1);
  /// Which pixels of the (reduced) picture run() reads.
  const Box& needed() const { return needed_; }

  /// `pixels`: those of needed(), channels together, rows `stride` bytes apart, and `slack` readable bytes behind the last.
  /// `planes`: channels·height·width bytes (CHW).
  void to_planes(const uint8_t* pixels, int64_t stride, int channels, uint8_t* planes);
  /// The same, channels together; `slack` bytes behind the result are written.
  void to_pixels(const uint8_t* pixels, int64_t stride, int channels, uint8_t* out);

  static constexpr size_t slack = 64;

 private:
  void run(const uint8_t* pixels, int64_t stride, int channels, uint8_t* planes, uint8_t* out);
  const uint8_t* across_all(const uint8_t* pixels, int64_t& stride, int channels);

  ResizeTable across_, down_;
  Frame frame_;
  int reduction_ = 0;
  Box needed_;
  std::vector<uint8_t> rows_, line_;
};

}  // namespace millrace::data
