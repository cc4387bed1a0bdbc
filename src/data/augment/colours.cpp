#include "data/augment/colours.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "backend/cpu/kernels/vectors.h"
#include "data/augment/colour_loops.h"

namespace millrace::data {
namespace {

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
  // Four, by turns, so that equal neighbours need not wait for each other.
  std::array<std::array<uint32_t, 256>, 4> counts{};
  size_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (size_t k = 0; k < 4; ++k) ++counts[k][plane[i + k]];
  for (; i < count; ++i) ++counts[0][plane[i]];
  std::array<int64_t, 256> sums;
  for (size_t v = 0; v < 256; ++v)
    sums[v] = int64_t{counts[0][v]} + counts[1][v] + counts[2][v] + counts[3][v];
  return sums;
}

/// The three planes of a colour picture.
template <typename Byte>
std::array<Byte*, 3> planes_of(const Extent& extent, Byte* planes) {
  return {planes, planes + extent.plane(), planes + 2 * extent.plane()};
}

}  // namespace

const ColourLoops& colour_loops() {
  static const ColourLoops& best =
      *cpu::for_this_cpu(colour_loops_avx512, colour_loops_avx2, colour_loops_baseline).front();
  return best;
}

void look_up(const Table& table, uint8_t* values, size_t count) {
  colour_loops().look_up(table.data(), values, static_cast<int64_t>(count), values);
}

Table brightness_table(double factor) { return blend_with(0, factor); }

Table contrast_table(const Extent& extent, const uint8_t* planes, double factor) {
  const size_t count = extent.plane();
  uint64_t sum = 0;
  if (extent.channels == 3)
    sum = colour_loops().luma_sum(planes_of(extent, planes).data(), static_cast<int64_t>(count));
  else
    for (size_t i = 0; i < count; ++i) sum += planes[i];
  const int mean = static_cast<int>(static_cast<double>(sum) / static_cast<double>(count) + 0.5);
  return blend_with(mean, factor);
}

void saturation(const Extent& extent, uint8_t* planes, double factor) {
  if (extent.channels != 3) return;
  colour_loops().saturate(planes_of(extent, planes).data(), static_cast<int64_t>(extent.plane()),
                          static_cast<float>(factor));
}

void sharpness(const Extent& extent, uint8_t* planes, double factor) {
  thread_local std::vector<uint8_t> before;
  const int height = extent.height, width = extent.width;
  if (width < 3) return;
  for (int c = 0; c < extent.channels; ++c, planes += extent.plane()) {
    before.assign(planes, planes + extent.plane());
    // The border stays.
    for (int y = 1; y + 1 < height; ++y) {
      const size_t at = static_cast<size_t>(y) * width + 1;
      colour_loops().sharpen(&before[at], width, width - 2, static_cast<float>(factor), planes + at);
    }
  }
}

void hue(const Extent& extent, uint8_t* planes, double turn) {
  if (extent.channels != 3) return;
  colour_loops().turn_hue(planes_of(extent, planes).data(), static_cast<int64_t>(extent.plane()),
                          static_cast<int>(turn * 255) & 255);
}

Table solarize_table(double threshold) {
  Table table;
  for (int i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i < threshold ? i : 255 - i);
  return table;
}

Table posterize_table(int bits) {
  Table table;
  for (int i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i & (0xff << (8 - bits)));
  return table;
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
    uint8_t low = 0, high = 0;
    colour_loops().extremes(planes, static_cast<int64_t>(count), &low, &high);
    if (high <= low) continue;
    const double scale = 255.0 / (high - low), offset = -low * scale;
    Table table;
    for (int i = 0; i < 256; ++i)
      table[i] = static_cast<uint8_t>(std::clamp(static_cast<int>(i * scale + offset), 0, 255));
    look_up(table, planes, count);
  }
}

}  // namespace millrace::data
