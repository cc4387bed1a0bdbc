// The weights of separable resampling with the triangle filter, in fixed point: the arithmetic of Pillow's
// Resample.c. Pictures are resized across and then down, so the bytes are those of Image.resize(BILINEAR), on
// any CPU.
#pragma once

#include <cstdint>
#include <vector>

namespace millrace::cpu {

/// For every position of the result the first position of the source, and the weights from there on.
struct ResizeTable {
  int width = 0;  // weights of one position, a multiple of four; those that do not count are 0
  std::vector<int> first, count;
  std::vector<int32_t> weights;
  /// True when every position is taken as it is.
  bool same = false;

  /// Places keep_from … + keep of `out` places made of the stretch from `start` to `end` in a row of `in`
  /// pixels. Memory is reused.
  void make(int in, double start, double end, int out, int keep_from, int keep);
};

}  // namespace millrace::cpu
