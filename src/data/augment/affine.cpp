// "affine 15 translate=0.1 scale=0.9..1.1 shear=10": turned, moved, scaled and sheared at random;
// torchvision's RandomAffine, bilinear.
#include <cmath>

#include "base/word_settings.h"
#include "data/augment/changes.h"
#include "data/augment/warp.h"

namespace millrace::data {
namespace {

std::unique_ptr<Augmentation> make_affine(const Settings& s) {
  const double degrees = s.number("DEGREES"), translate = s.number("translate"), most = s.number("shear");
  const std::pair<double, double> scales = range_of(s, "scale");
  const auto fill = static_cast<uint8_t>(s.number("fill"));
  return change_by([=](const Extent& extent, const uint8_t* in, uint8_t* out, Draw& draw) {
    const auto around = [&](double reach) { return between(draw, {-reach, reach}); };
    const double angle = around(degrees);
    const double right = std::nearbyint(around(translate * extent.width)),
                 down = std::nearbyint(around(translate * extent.height));
    const double scale = between(draw, scales), shear = around(most);
    warp(
        extent, in, out,
        affine_projection({extent.width * 0.5, extent.height * 0.5}, angle, {right, down}, scale, {shear, 0}),
        fill);
  });
}

}  // namespace

MILLRACE_AUGMENTATION(affine){
    .name = "affine",
    .doc = "turned, moved, scaled and sheared",
    .place = 80,
    .settings = {{"DEGREES", "turned by so many at most, each way", 0.0, 0, 180},
                 {"translate", "share of the sides by which it moves at most", 0.0, 0, 1},
                 {"scale", "factor of the size", std::vector{1.0, 1.0}, 0.01, 100},
                 {"shear", "degrees at most", 0.0, 0, 89},
                 fill_setting()},
    .make = make_affine};

}  // namespace millrace::data
