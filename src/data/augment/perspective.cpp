// "perspective 0.5": seen from another side; torchvision's RandomPerspective, bilinear. Each corner moves
// inwards by up to DISTORTION times half the picture.
#include <cstring>

#include "data/augment/changes.h"
#include "data/augment/warp.h"

namespace millrace::data {
namespace {

std::unique_ptr<Augmentation> make_perspective(const Settings& s) {
  const double p = s.number("p"), distortion = s.number("DISTORTION");
  const auto fill = static_cast<uint8_t>(s.number("fill"));
  return change_by([=](const Extent& extent, const uint8_t* in, uint8_t* out, Draw& draw) {
    if (draw.random.uniform() >= p) {
      std::memcpy(out, in, extent.bytes());
      return;
    }
    const auto inwards = [&](int size) {
      const int half = size / 2;  // whole pixels, as torchvision counts
      return static_cast<double>(draw.random.below(static_cast<uint32_t>(distortion * half) + 1));
    };
    const double right = extent.width - 1, low = extent.height - 1;
    std::array<std::pair<double, double>, 4> corners;
    for (auto& [x, y] : corners) {
      x = inwards(extent.width);
      y = inwards(extent.height);
    }
    corners[1].first = right - corners[1].first;
    corners[2] = {right - corners[2].first, low - corners[2].second};
    corners[3].second = low - corners[3].second;
    warp(extent, in, out, perspective_projection(extent.height, extent.width, corners), fill);
  });
}

}  // namespace

MILLRACE_AUGMENTATION(perspective){
    .name = "perspective",
    .doc = "seen from another side",
    .place = 90,
    .settings = {{"DISTORTION", "share of half the sides by which corners move inwards at most", 0.0, 0, 1},
                 p_setting(0.5),
                 fill_setting()},
    .make = make_perspective};

}  // namespace millrace::data
