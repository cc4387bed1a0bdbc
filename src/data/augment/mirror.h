// Left-right mirror image; shared by flip and alternating-flip.
#pragma once

#include <cstring>

#include "data/augment/augment.h"
#include "data/pictures/resize_loops.h"

namespace millrace::data {

/// Copies the picture, mirrored when `mirrored`.
inline void mirror(const Extent& extent, const uint8_t* in, uint8_t* out, bool mirrored) {
  if (!mirrored) {
    std::memcpy(out, in, extent.bytes());
    return;
  }
  const size_t width = static_cast<size_t>(extent.width), rows = extent.bytes() / width;
  for (size_t row = 0; row < rows; ++row)
    resize_loops().turned(in + row * width, extent.width, out + row * width);
}

}  // namespace millrace::data
