// A window shifted over a picture whose surroundings are made up; shared by pad-crop and random-shift.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "data/augment/augment.h"

namespace millrace::data {

enum class Border { reflect, zero, edge };

/// Writes the picture seen through a window moved `down` rows and `right` columns (negative: up, left).
/// Reflection does not repeat the border pixel (as numpy's and PyTorch's "reflect") and needs |down| <
/// height, |right| < width.
inline void shift_window(const Extent& extent, const uint8_t* in, uint8_t* out, int down, int right,
                         Border border) {
  const int height = extent.height, width = extent.width;
  const auto outside = [border](int i, int size) {
    if (i >= 0 && i < size) return i;
    if (border == Border::zero) return -1;
    if (border == Border::edge) return std::clamp(i, 0, size - 1);
    return i < 0 ? -i : 2 * (size - 1) - i;
  };
  // Columns from..to of a row lie inside the picture and are copied as a block.
  const int from = std::clamp(-right, 0, width), to = std::clamp(width - right, from, width);
  for (int c = 0; c < extent.channels; ++c) {
    for (int y = 0; y < height; ++y, out += width) {
      const int row = outside(y + down, height);
      if (row < 0) {
        std::memset(out, 0, static_cast<size_t>(width));
        continue;
      }
      const uint8_t* line = in + c * extent.plane() + static_cast<size_t>(row) * width;
      if (to > from) std::memcpy(out + from, line + from + right, static_cast<size_t>(to - from));
      const auto fill = [&](int x) {
        const int column = outside(x + right, width);
        out[x] = column < 0 ? 0 : line[column];
      };
      for (int x = 0; x < from; ++x) fill(x);
      for (int x = to; x < width; ++x) fill(x);
    }
  }
}

}  // namespace millrace::data
