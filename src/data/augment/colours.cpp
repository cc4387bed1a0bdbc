#include "data/augment/colours.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace millrace::data {
namespace {

using Table = std::array<uint8_t, 256>;

void look_up(const Table& table, uint8_t* plane, size_t count) {
  for (size_t i = 0; i < count; ++i) plane[i] = table[plane[i]];
}

/// From `other` (factor 0) over `value` (1) and on: Pillow's ImagingBlend.
uint8_t blend(int other, int value, float factor) {
  const float mixed = static_cast<float>(other) + factor * static_cast<float>(value - other);
  return mixed <= 0 ? 0 : mixed >= 255 ? 255 : static_cast<uint8_t>(mixed);
}

Table blend_with(int other, double factor) {
  Table table;
  for (int i = 0; i < 256; ++i) table[i] = blend(other, i, static_cast<float>(factor));
  return table;
}

std::array<int64_t, 256> histogram(const uint8_t* plane, size_t count) {
  std::array<int64_t, 256> counts{};
  for (size_t i = 0; i < count; ++i) ++counts[plane[i]];
  return counts;
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

void from_hsv(int h, int s, int v, uint8_t* rgb[3], size_t at) {
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

}  // namespace

void luma(const Extent& extent, const uint8_t* planes, uint8_t* grey) {
  const size_t count = extent.plane();
  if (extent.channels != 3) {
    std::memcpy(grey, planes, count);
    return;
  }
  const uint8_t *red = planes, *green = planes + count, *blue = planes + 2 * count;
  for (size_t i = 0; i < count; ++i)
    grey[i] = static_cast<uint8_t>((19595U * red[i] + 38470U * green[i] + 7471U * blue[i] + 32768U) >> 16);
}

void brightness(const Extent& extent, uint8_t* planes, double factor) {
  look_up(blend_with(0, factor), planes, extent.bytes());
}

void contrast(const Extent& extent, uint8_t* planes, double factor) {
  thread_local std::vector<uint8_t> grey;
  grey.resize(extent.plane());
  luma(extent, planes, grey.data());
  uint64_t sum = 0;
  for (const uint8_t value : grey) sum += value;
  const int mean = static_cast<int>(static_cast<double>(sum) / static_cast<double>(grey.size()) + 0.5);
  look_up(blend_with(mean, factor), planes, extent.bytes());
}

void saturation(const Extent& extent, uint8_t* planes, double factor) {
  if (extent.channels != 3) return;
  thread_local std::vector<uint8_t> grey;
  const size_t count = extent.plane();
  grey.resize(count);
  luma(extent, planes, grey.data());
  for (int c = 0; c < 3; ++c, planes += count)
    for (size_t i = 0; i < count; ++i) planes[i] = blend(grey[i], planes[i], static_cast<float>(factor));
}

void sharpness(const Extent& extent, uint8_t* planes, double factor) {
  thread_local std::vector<uint8_t> before;
  const int height = extent.height, width = extent.width;
  for (int c = 0; c < extent.channels; ++c, planes += extent.plane()) {
    before.assign(planes, planes + extent.plane());
    // Pillow's SMOOTH: a centre of 5 among ones, by 13; the border stays.
    for (int y = 1; y + 1 < height; ++y)
      for (int x = 1; x + 1 < width; ++x) {
        const uint8_t* at = &before[static_cast<size_t>(y) * width + x];
        int sum = 4 * at[0];
        for (int dy = -1; dy <= 1; ++dy)
          for (int dx = -1; dx <= 1; ++dx) sum += at[dy * width + dx];
        planes[static_cast<size_t>(y) * width + x] =
            blend((2 * sum + 13) / 26, at[0], static_cast<float>(factor));
      }
  }
}

void hue(const Extent& extent, uint8_t* planes, double turn) {
  if (extent.channels != 3) return;
  const size_t count = extent.plane();
  uint8_t* rgb[3] = {planes, planes + count, planes + 2 * count};
  const int shift = static_cast<int>(turn * 255) & 255;
  for (size_t i = 0; i < count; ++i) {
    int h = 0, s = 0, v = 0;
    to_hsv(rgb[0][i], rgb[1][i], rgb[2][i], h, s, v);
    from_hsv((h + shift) & 255, s, v, rgb, i);
  }
}

void solarize(const Extent& extent, uint8_t* planes, double threshold) {
  Table table;
  for (int i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i < threshold ? i : 255 - i);
  look_up(table, planes, extent.bytes());
}

void posterize(const Extent& extent, uint8_t* planes, int bits) {
  Table table;
  for (int i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i & (0xff << (8 - bits)));
  look_up(table, planes, extent.bytes());
}

void equalize(const Extent& extent, uint8_t* planes) {
  const size_t count = extent.plane();
  for (int c = 0; c < extent.channels; ++c, planes += count) {
    const auto counts = histogram(planes, count);
    const auto last = std::find_if(counts.rbegin(), counts.rend(), [](int64_t n) { return n > 0; });
    if (*last == static_cast<int64_t>(count)) continue;
    const int64_t step = (static_cast<int64_t>(count) - *last) / 255;
    if (step == 0) continue;
    Table table;
    int64_t sum = step / 2;
    for (int i = 0; i < 256; ++i) {
      table[i] = static_cast<uint8_t>(std::min<int64_t>(sum / step, 255));
      sum += counts[i];
    }
    look_up(table, planes, count);
  }
}

void autocontrast(const Extent& extent, uint8_t* planes) {
  const size_t count = extent.plane();
  for (int c = 0; c < extent.channels; ++c, planes += count) {
    const auto [low, high] = std::minmax_element(planes, planes + count);
    if (*high <= *low) continue;
    const double scale = 255.0 / (*high - *low), offset = -*low * scale;
    Table table;
    for (int i = 0; i < 256; ++i)
      table[i] = static_cast<uint8_t>(std::clamp(static_cast<int>(i * scale + offset), 0, 255));
    look_up(table, planes, count);
  }
}

}  // namespace millrace::data
