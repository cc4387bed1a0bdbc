// Sizes of pictures in memory.
#pragma once

#include <cstddef>

namespace millrace::data {

/// The size of pictures in planes (CHW).
struct Extent {
  int channels = 0, height = 0, width = 0;
  size_t plane() const { return static_cast<size_t>(height) * width; }
  size_t bytes() const { return plane() * channels; }
};

}  // namespace millrace::data
