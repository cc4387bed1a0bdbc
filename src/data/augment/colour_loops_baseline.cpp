#include <algorithm>
#include <cmath>

#include "data/augment/colour_loops.h"

namespace millrace::data {
namespace {

/// From `other` (factor 0) over `value` (1) and on: Pillow's ImagingBlend.
uint8_t blend(int other, int value, float factor) {
  const float mixed = static_cast<float>(other) + factor * static_cast<float>(value - other);
  return mixed <= 0 ? 0 : mixed >= 255 ? 255 : static_cast<uint8_t>(mixed);
}

uint8_t luma_of(int r, int g, int b) {
  return static_cast<uint8_t>((19595 * r + 38470 * g + 7471 * b + 32768) >> 16);
}

/// 8-bit hue, saturation, value as Pillow's rgb2hsv.
void to_hsv(int r, int g, int b, int& h, int& s, int& v) {
  const int most = std::max({r, g, b}), least = std::min({r, g, b});
  v = most;
  h = s = 0;
  if (most == least) return;
  const float range = static_cast<float>(most - least);
  const float red = static_cast<float>(most - r) / range, green = static_cast<float>(most - g) / range,
              blue = static_cast<float>(most - b) / range;
  const auto angle = static_cast<float>(r == most   ? blue - green
                                        : g == most ? 2.0 + red - blue
                                                    : 4.0 + green - red);
  h = static_cast<int>(static_cast<float>(std::fmod(angle / 6.0 + 1.0, 1.0)) * 255.0);
  s = static_cast<int>(range / static_cast<float>(most) * 255.0);
}

void from_hsv(int h, int s, int v, uint8_t* const* rgb, int64_t at) {
  if (s == 0) {
    for (int c = 0; c < 3; ++c) rgb[c][at] = static_cast<uint8_t>(v);
    return;
  }
  const auto place = static_cast<float>(h * 6.0 / 255.0), strength = static_cast<float>(s / 255.0);
  const int sector = static_cast<int>(std::floor(place));
  const float rest = place - static_cast<float>(sector);
  const auto value = [&](float less) {
    return static_cast<uint8_t>(std::clamp(std::round(static_cast<double>(v) * (1.0 - less)), 0.0, 255.0));
  };
  const uint8_t p = value(strength), q = value(strength * rest),
                t = value(static_cast<float>(strength * (1.0 - rest))), full = static_cast<uint8_t>(v);
  const uint8_t colours[6][3] = {{full, t, p}, {q, full, p}, {p, full, t},
                                 {p, q, full}, {t, p, full}, {full, p, q}};
  for (int c = 0; c < 3; ++c) rgb[c][at] = colours[sector % 6][c];
}

void look_up(const uint8_t* table, const uint8_t* in, int64_t count, uint8_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = table[in[i]];
}

uint64_t luma_sum(const uint8_t* const* rgb, int64_t count) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += luma_of(rgb[0][i], rgb[1][i], rgb[2][i]);
  return sum;
}

void saturate(uint8_t* const* rgb, int64_t count, float factor) {
  for (int64_t i = 0; i < count; ++i) {
    const int grey = luma_of(rgb[0][i], rgb[1][i], rgb[2][i]);
    for (int c = 0; c < 3; ++c) rgb[c][i] = blend(grey, rgb[c][i], factor);
  }
}

void turn_hue(uint8_t* const* rgb, int64_t count, int shift) {
  for (int64_t i = 0; i < count; ++i) {
    int h = 0, s = 0, v = 0;
    to_hsv(rgb[0][i], rgb[1][i], rgb[2][i], h, s, v);
    from_hsv((h + shift) & 255, s, v, rgb, i);
  }
}

void sharpen(const uint8_t* at, int64_t stride, int64_t count, float factor, uint8_t* out) {
  // Pillow's SMOOTH: a centre of 5 among ones, by 13.
  for (int64_t i = 0; i < count; ++i, ++at) {
    int sum = 4 * at[0];
    for (int64_t row = -stride; row <= stride; row += stride) sum += at[row - 1] + at[row] + at[row + 1];
    out[i] = blend((2 * sum + 13) / 26, at[0], factor);
  }
}

void extremes(const uint8_t* values, int64_t count, uint8_t* least, uint8_t* most) {
  const auto [low, high] = std::minmax_element(values, values + count);
  *least = *low;
  *most = *high;
}

constexpr ColourLoops loops = {look_up, luma_sum, saturate, turn_hue, sharpen, extremes};

}  // namespace

const ColourLoops& colour_loops_baseline() { return loops; }

}  // namespace millrace::data
