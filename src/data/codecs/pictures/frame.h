// Which part of a picture is looked at, and how large it is made.
#pragma once

#include <cstdint>
#include <string>

#include <millrace/picture.h>

namespace millrace::data {

/// The deterministic part of preparing pictures, the same in training, evaluation and prediction.
struct FrameRule {
  /// Side in pixels; 0: as it is. Without a crop pictures become squares of this side; with one, their
  /// shorter side becomes this long and the other follows (rounded down).
  int resize = 0;
  /// Side of the square that is cut out of the middle; 0: nothing is.
  int crop = 0;
  /// What the keys are called by in messages: "input" of "input.resize".
  std::string key = "input";

  /// InputError when a size is not possible at all.
  void check() const;
  /// The frame of a picture of this size. InputError when it is smaller than the crop.
  Frame frame(int picture_height, int picture_width) const;
};

/// All of a picture, resized.
inline Frame whole_frame(int picture_height, int picture_width, int height, int width) {
  return {{0, 0, picture_height, picture_width}, height, width, {0, 0, height, width}};
}

}  // namespace millrace::data
