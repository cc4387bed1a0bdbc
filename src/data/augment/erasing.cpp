// "erasing": a rectangle of random size and place gets the mean of its channel; torchvision's RandomErasing:
// ten times area = H·W·uniform(scale) and height / width = exp(uniform(log ratio)), until it fits.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/word_settings.h"
#include "data/augment/changes.h"

namespace millrace::data {
namespace {

void erase(const Extent& extent, uint8_t* plane, uint32_t top, uint32_t left, int height, int width) {
  const uint64_t sum = std::accumulate(plane, plane + extent.plane(), uint64_t{0});
  const auto mean = static_cast<uint8_t>((sum + extent.plane() / 2) / extent.plane());
  for (int y = 0; y < height; ++y)
    std::fill_n(plane + (top + static_cast<size_t>(y)) * extent.width + left, width, mean);
}

std::unique_ptr<Augmentation> make_erasing(const Settings& s) {
  const std::pair<double, double> scale = range_of(s, "scale"), ratios = range_of(s, "ratio");
  const std::pair<double, double> logarithms = {std::log(ratios.first), std::log(ratios.second)};
  return change_sometimes(s.number("p"), [=](const Extent& extent, uint8_t* planes, Draw& draw) {
    const double area = static_cast<double>(extent.plane());
    for (int i = 0; i < 10; ++i) {
      const double wanted = area * between(draw, scale), ratio = std::exp(between(draw, logarithms));
      const int h = static_cast<int>(std::nearbyint(std::sqrt(wanted * ratio))),
                w = static_cast<int>(std::nearbyint(std::sqrt(wanted / ratio)));
      if (h >= extent.height || w >= extent.width) continue;
      const auto top = draw.random.below(static_cast<uint32_t>(extent.height - h + 1)),
                 left = draw.random.below(static_cast<uint32_t>(extent.width - w + 1));
      for (int c = 0; c < extent.channels; ++c) erase(extent, planes + c * extent.plane(), top, left, h, w);
      return;
    }
  });
}

}  // namespace

MILLRACE_AUGMENTATION(erasing){.name = "erasing",
                               .doc = "a rectangle under the mean of its channel",
                               .place = 170,
                               .settings = {p_setting(0.5),
                                            {"scale", "share of the area", std::vector{0.02, 0.33}, 0, 1},
                                            {"ratio", "height to width", std::vector{0.3, 3.3}, 0.01, 100}},
                               .make = make_erasing};

}  // namespace millrace::data
