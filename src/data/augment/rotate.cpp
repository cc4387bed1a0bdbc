// "rotate 15": turns by a random angle of up to that many degrees each way about the centre; bilinear, edge
// pixels continue outside.
#include <algorithm>
#include <cmath>

#include "data/augment/augment.h"

namespace millrace::data {
namespace {

class Rotate final : public Augmentation {
 public:
  explicit Rotate(double degrees) : degrees_(degrees) {}

  void apply(const Extent& extent, const uint8_t* in, uint8_t* out, Draw& draw) const override {
    const double angle = (2.0 * draw.random.uniform() - 1.0) * degrees_ * (3.14159265358979323846 / 180.0);
    // Coordinates in 1/65536 pixel, weights in 1/256: from here on integers only.
    const auto cosine = static_cast<int64_t>(std::lround(std::cos(angle) * 65536));
    const auto sine = static_cast<int64_t>(std::lround(std::sin(angle) * 65536));
    const int64_t height = extent.height, width = extent.width;
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        // Offsets from the centre are in half pixels: (2x + 1 - width) / 2.
        const int64_t dx = 2 * x + 1 - width, dy = 2 * y + 1 - height;
        const int64_t sx = (cosine * dx + sine * dy + (width - 1) * 65536) / 2;
        const int64_t sy = (cosine * dy - sine * dx + (height - 1) * 65536) / 2;
        const int64_t x0 = sx >> 16, y0 = sy >> 16, fx = (sx >> 8) & 255, fy = (sy >> 8) & 255;
        const int64_t left = std::clamp<int64_t>(x0, 0, width - 1),
                      right = std::clamp<int64_t>(x0 + 1, 0, width - 1);
        const int64_t top = std::clamp<int64_t>(y0, 0, height - 1),
                      low = std::clamp<int64_t>(y0 + 1, 0, height - 1);
        for (int c = 0; c < extent.channels; ++c) {
          const uint8_t* plane = in + c * extent.plane();
          const int64_t above = plane[top * width + left] * (256 - fx) + plane[top * width + right] * fx;
          const int64_t below = plane[low * width + left] * (256 - fx) + plane[low * width + right] * fx;
          out[c * extent.plane() + y * width + x] =
              static_cast<uint8_t>((above * (256 - fy) + below * fy + 32768) >> 16);
        }
      }
    }
  }

 private:
  double degrees_;
};

}  // namespace

const AugmentationKind rotate_kind{"rotate", "rotate DEGREES",
                                   [](AugmentationWords& words) -> std::unique_ptr<Augmentation> {
                                     return std::make_unique<Rotate>(words.number("DEGREES", 0, 180));
                                   }};

}  // namespace millrace::data
