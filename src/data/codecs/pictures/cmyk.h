// Colours of inks on paper.
#pragma once

#include <cstdint>

namespace millrace::data {

/// `count` pixels of cyan, magenta, yellow and black (255: all of that ink) to RGB, without a profile of the
/// press, as Pillow does it: what one ink lets through, the black takes its share of. `to` may be `from`.
inline void cmyk_to_rgb(const uint8_t* from, int64_t count, uint8_t* to) {
  for (int64_t i = 0; i < count; ++i, from += 4, to += 3) {
    const int light = 255 - from[3];
    const uint8_t ink[3] = {from[0], from[1], from[2]};
    for (int c = 0; c < 3; ++c) {
      const int product = ink[c] * light + 128;
      to[c] = static_cast<uint8_t>(light - ((product + (product >> 8)) >> 8));
    }
  }
}

}  // namespace millrace::data
