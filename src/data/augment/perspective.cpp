// "perspective 0.5": seen from another side; torchvision's RandomPerspective, bilinear. Each corner moves
// inwards by up to DISTORTION times half the picture.
#include <cstring>

#include "data/augment/sometimes.h"
#include "data/augment/warp.h"

namespace millrace::data {
namespace {

class Perspective final : public Augmentation {
 public:
  Perspective(double probability, double distortion, uint8_t fill)
      : probability_(probability), distortion_(distortion), fill_(fill) {}

  void apply(const Extent& extent, const uint8_t* in, uint8_t* out, Draw& draw) const override {
    if (draw.random.uniform() >= probability_) {
      std::memcpy(out, in, extent.bytes());
      return;
    }
    const auto inwards = [&](int size) {
      const int half = size / 2;  // whole pixels, as torchvision counts
      return static_cast<double>(draw.random.below(static_cast<uint32_t>(distortion_ * half) + 1));
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
    warp(extent, in, out, perspective_projection(extent.height, extent.width, corners), fill_);
  }

 private:
  double probability_, distortion_;
  uint8_t fill_;
};

}  // namespace

MILLRACE_AUGMENTATION(perspective){
    .name = "perspective",
    .doc = "seen from another side",
    .place = 90,
    .settings = {{"DISTORTION", "share of half the sides by which corners move inwards at most", 0.0, 0, 1},
                 p_setting(0.5),
                 fill_setting()},
    .make = [](const Settings& s) -> std::unique_ptr<Augmentation> {
      return std::make_unique<Perspective>(s.number("p"), s.number("DISTORTION"),
                                           static_cast<uint8_t>(s.number("fill")));
    }};

}  // namespace millrace::data
