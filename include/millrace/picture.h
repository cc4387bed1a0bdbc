// Sizes of pictures in memory, and which part of a picture is looked at.
#pragma once

#include <cstddef>

namespace millrace::data {

/// The size of pictures in planes (CHW).
struct Extent {
  int channels = 0, height = 0, width = 0;
  size_t plane() const { return static_cast<size_t>(height) * width; }
  size_t bytes() const { return plane() * channels; }
};

/// A rectangle of pixels.
struct Box {
  int top = 0, left = 0, height = 0, width = 0;
  bool operator==(const Box&) const = default;
};

/// `part` of a picture is resized to height x width (bilinear, antialiased, as the operator `resize`), and
/// `keep` of the result stays. Pixels outside of the part have no influence.
struct Frame {
  Box part;
  int height = 0, width = 0;
  Box keep;
  bool operator==(const Frame&) const = default;
  /// True when the picture stays as it is.
  bool nothing(int picture_height, int picture_width) const {
    const Box all{0, 0, picture_height, picture_width};
    return part == all && keep == all && height == picture_height && width == picture_width;
  }
};

}  // namespace millrace::data
