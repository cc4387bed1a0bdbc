// Parts of pictures resized with the loops and weights of the operator `resize`: the bytes are those of
// Pillow's Image.resize(BILINEAR), on any CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cpu/kernels/resize/loops.h"
#include "backend/cpu/kernels/resize/table.h"
#include "data/codecs/pictures/frame.h"

namespace millrace::data {

/// Resizes frames of pictures. Keeps its memory: one for each thread.
class Resampler {
 public:
  /// The next run() is of this frame, of a picture that is `reduction` (1, 2, 4, 8) times smaller than the
  /// frame thinks.
  void plan(const Frame& frame, int reduction = 1);
  /// Which pixels of the (reduced) picture run() reads.
  const Box& needed() const { return needed_; }

  /// `pixels`: those of needed(), channels together, rows `stride` bytes apart, and `slack` readable bytes
  /// behind the last. `planes`: channels·height·width bytes (CHW).
  void to_planes(const uint8_t* pixels, int64_t stride, int channels, uint8_t* planes);
  /// The same, channels together; `slack` bytes behind the result are written.
  void to_pixels(const uint8_t* pixels, int64_t stride, int channels, uint8_t* out);

  static constexpr size_t slack = cpu::ResizeLoops::slack;

 private:
  void run(const uint8_t* pixels, int64_t stride, int channels, uint8_t* planes, uint8_t* out);
  const uint8_t* across_all(const uint8_t* pixels, int64_t& stride, int channels);

  cpu::ResizeTable across_, down_;
  Frame frame_;
  int reduction_ = 0;
  Box needed_;
  std::vector<uint8_t> rows_, line_;
};

}  // namespace millrace::data
