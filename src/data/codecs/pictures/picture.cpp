#include "data/codecs/pictures/picture.h"

#include <algorithm>

#include "base/format.h"

namespace millrace::data {

std::string Picture::size_text() const {
  return fmt::format("{}x{} {}", width, height, channels == 1 ? "grey" : "colour");
}

void convert_channels(const uint8_t* from, int64_t count, int from_channels, int to_channels, uint8_t* to) {
  if (from_channels == to_channels) {
    std::copy_n(from, count * from_channels, to);
  } else if (to_channels == 3) {
    for (int64_t i = 0; i < count; ++i) std::fill_n(to + 3 * i, 3, from[i]);
  } else {
    for (int64_t i = 0; i < count; ++i, from += 3)
      to[i] = static_cast<uint8_t>((19595 * from[0] + 38470 * from[1] + 7471 * from[2] + 32768) >> 16);
  }
}

Picture with_channels(const Picture& picture, int channels) {
  if (picture.channels == channels) return picture;
  Picture out{picture.height, picture.width, channels, {}};
  const int64_t count = int64_t{picture.height} * picture.width;
  out.pixels.resize(static_cast<size_t>(count * channels));
  convert_channels(picture.pixels.data(), count, picture.channels, channels, out.pixels.data());
  return out;
}

}  // namespace millrace::data
