// Pictures turned upright, by EXIF's orientation: 2 to 4 mirror and turn by 180°, 5 to 8 also swap the sides.
#pragma once

#include <cstdint>

#include "data/codecs/pictures/frame.h"
#include "data/codecs/pictures/picture.h"

namespace millrace::data {

struct Orientation {
  int exif = 1;

  bool upright() const { return exif == 1; }
  bool swaps() const { return exif >= 5; }
  /// Do rows of the stored picture go up, and its columns from right to left?
  bool rows_mirrored() const { return exif == 3 || exif == 4 || exif == 6 || exif == 7; }
  bool columns_mirrored() const { return exif == 2 || exif == 3 || exif == 7 || exif == 8; }

  /// Where a part of the upright picture lies in the stored one, which is height x width.
  Box stored(const Box& part, int height, int width) const;
  /// Turns the height x width pixels stored at `from`, rows `stride` bytes apart, channels together.
  void turn(const uint8_t* from, int64_t stride, int height, int width, int channels, uint8_t* to) const;
};

/// The picture turned upright.
void turn_upright(Picture& picture, Orientation orientation);

}  // namespace millrace::data
