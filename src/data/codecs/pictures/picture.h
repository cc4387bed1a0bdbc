// Decoded pictures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::data {

/// Largest picture that is decoded, in pixels: a damaged header must not ask for all memory.
inline constexpr int64_t max_pixels = int64_t{1} << 27;

/// Pixels in memory, row by row, channels together (HWC); one channel is grey, three are red, green, blue.
struct Picture {
  int height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;

  bool operator==(const Picture&) const = default;
  /// "32x32 grey", "640x480 colour" (width first, as cameras say).
  std::string size_text() const;
};

/// Grey to colour (the channel three times) or colour to grey (ITU-R BT.601 luma); else a copy.
Picture with_channels(const Picture& picture, int channels);

/// The same for a row of `count` pixels, channels together.
void convert_channels(const uint8_t* from, int64_t count, int from_channels, int to_channels, uint8_t* to);

/// Bilinear resize with a triangle filter that widens when shrinking, so that nothing is skipped. The integer
/// arithmetic of Pillow's Image.resize(BILINEAR), across first and then down: the same bytes everywhere.
Picture resize(const Picture& picture, int height, int width);

}  // namespace millrace::data
