// "affine 15 translate=0.1 scale=0.9..1.1 shear=10": turned, moved, scaled and sheared at random;
// torchvision's RandomAffine, bilinear.
#include <cmath>

#include "base/word_settings.h"
#include "data/augment/sometimes.h"
#include "data/augment/warp.h"

namespace millrace::data {
namespace {

struct Reach {
  double degrees, translate, shear;
  std::pair<double, double> scale;
  uint8_t fill;
};

class Affine final : public Augmentation {
 public:
  explicit Affine(const Reach& reach) : reach_(reach) {}

  void apply(const Extent& extent, const uint8_t* in, uint8_t* out, Draw& draw) const override {
    const auto around = [&](double reach) { return between(draw, {-reach, reach}); };
    const double angle = around(reach_.degrees);
    const double right = std::nearbyint(around(reach_.translate * extent.width)),
                 down = std::nearbyint(around(reach_.translate * extent.height));
    const double scale = between(draw, reach_.scale), shear = around(reach_.shear);
    warp(
        extent, in, out,
        affine_projection({extent.width * 0.5, extent.height * 0.5}, angle, {right, down}, scale, {shear, 0}),
        reach_.fill);
  }

 private:
  Reach reach_;
};

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
    .make = [](const Settings& s) -> std::unique_ptr<Augmentation> {
      return std::make_unique<Affine>(Reach{s.number("DEGREES"), s.number("translate"), s.number("shear"),
                                            range_of(s, "scale"), static_cast<uint8_t>(s.number("fill"))});
    }};

}  // namespace millrace::data
