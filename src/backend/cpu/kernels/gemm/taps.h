// What the taps of a convolution's window meet.
#pragma once

#include <vector>

#include "backend/cpu/kernels/geometry.h"

namespace millrace::cpu::gemm {

/// Where in x the window of a position of y begins (outside of the picture too), and which element that is.
struct Window {
  int64_t row, column, element;
};

/// The pictures x [images, height, width, channels] that a convolution reads, by positions of its result and
/// taps.
class Taps {
 public:
  explicit Taps(const Geometry& g);
  int64_t count() const { return g_.kernel_height * g_.kernel_width; }
  int64_t positions() const { return g_.images * g_.out_height * g_.out_width; }
  /// The windows of `count` positions from `first` on.
  void find(int64_t first, int64_t count, Window* windows) const;
  /// Per window the channels that the tap meets; zeros outside of the picture.
  void move(const char* x, const Window* windows, int64_t count, int64_t tap, const char** moved) const;

 private:
  Geometry g_;
  std::vector<float> zeros_;  // what lies outside of a picture
};

}  // namespace millrace::cpu::gemm
