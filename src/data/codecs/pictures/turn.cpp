#include "data/codecs/pictures/turn.h"

#include <algorithm>
#include <utility>

namespace millrace::data {

Box Orientation::stored(const Box& part, int height, int width) const {
  Box box = part;
  if (swaps()) box = {part.left, part.top, part.width, part.height};
  if (rows_mirrored()) box.top = height - box.top - box.height;
  if (columns_mirrored()) box.left = width - box.left - box.width;
  return box;
}

void Orientation::turn(const uint8_t* from, int64_t stride, int height, int width, int channels,
                       uint8_t* to) const {
  int64_t down = stride, across = channels;
  if (rows_mirrored()) from += down * (height - 1), down = -down;
  if (columns_mirrored()) from += across * (width - 1), across = -across;
  if (swaps()) std::swap(down, across), std::swap(height, width);
  const int64_t line = int64_t{width} * channels;
  // By tiles: where sides are swapped, neighbours to the right lie a row apart.
  constexpr int tile = 32;
  for (int top = 0; top < height; top += tile)
    for (int left = 0; left < width; left += tile)
      for (int y = top; y < std::min(top + tile, height); ++y) {
        const uint8_t* pixel = from + y * down + left * across;
        uint8_t* out = to + y * line + int64_t{left} * channels;
        for (int x = left; x < std::min(left + tile, width); ++x, pixel += across, out += channels)
          for (int c = 0; c < channels; ++c) out[c] = pixel[c];
      }
}

void turn_upright(Picture& picture, Orientation orientation) {
  if (orientation.upright()) return;
  std::vector<uint8_t> pixels(picture.pixels.size());
  orientation.turn(picture.pixels.data(), int64_t{picture.width} * picture.channels, picture.height,
                   picture.width, picture.channels, pixels.data());
  picture.pixels = std::move(pixels);
  if (orientation.swaps()) std::swap(picture.height, picture.width);
}

}  // namespace millrace::data
