// "affine 15 translate=0.1 scale=0.9..1.1 shear=10": turned, moved, scaled and sheared at random; torchvision's
// RandomAffine, bilinear.
#include <cmath>

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

const AugmentationKind affine_kind{"affine", "affine DEGREES [translate=0] [scale=1..1] [shear=0] [fill=0]",
                                   [](AugmentationWords& words) -> std::unique_ptr<Augmentation> {
                                     Reach reach{};
                                     reach.degrees = words.number("DEGREES", 0, 180);
                                     reach.translate = words.option("translate", 0, 0, 1);
                                     reach.scale = words.range("scale", {1, 1}, 0.01, 100);
                                     reach.shear = words.option("shear", 0, 0, 89);
                                     reach.fill = static_cast<uint8_t>(words.option("fill", 0, 0, 255));
                                     return std::make_unique<Affine>(reach);
                                   }};

}  // namespace millrace::data
