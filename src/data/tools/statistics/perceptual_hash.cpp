#include "data/tools/statistics/perceptual_hash.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace millrace::data {
namespace {

constexpr int side = 32, kept = 8;

/// cos(π (2x + 1) k / 64): the DCT-II's basis.
const std::array<std::array<double, side>, kept>& cosines() {
  static const auto table = [] {
    std::array<std::array<double, side>, kept> t{};
    for (int k = 0; k < kept; ++k)
      for (int x = 0; x < side; ++x) t[k][x] = std::cos(std::numbers::pi * (2 * x + 1) * k / (2 * side));
    return t;
  }();
  return table;
}

}  // namespace

Likeness likeness(const Picture& picture) {
  const Picture small = resize(with_channels(picture, 1), side, side), tiny = resize(small, kept, kept);
  std::array<std::array<double, kept>, side> rows{};
  for (int y = 0; y < side; ++y)
    for (int k = 0; k < kept; ++k)
      for (int x = 0; x < side; ++x) rows[y][k] += small.pixels[y * side + x] * cosines()[k][x];
  std::array<double, kept * kept> frequencies{};
  for (int j = 0; j < kept; ++j)
    for (int k = 0; k < kept; ++k)
      for (int y = 0; y < side; ++y) frequencies[j * kept + k] += rows[y][k] * cosines()[j][y];
  auto sorted = frequencies;
  std::sort(sorted.begin(), sorted.end());
  const double median = (sorted[31] + sorted[32]) / 2;
  Likeness result;
  for (size_t i = 0; i < frequencies.size(); ++i) result.hash |= uint64_t{frequencies[i] > median} << i;
  std::copy(tiny.pixels.begin(), tiny.pixels.end(), result.thumbnail.begin());
  return result;
}

}  // namespace millrace::data
