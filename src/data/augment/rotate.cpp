// "rotate 15": turns by a random angle of up to that many degrees each way about the centre; bilinear, edge
// pixels continue outside.
#include <cmath>

#include "data/augment/changes.h"
#include "data/augment/warp_loops.h"

namespace millrace::data {
namespace {

std::unique_ptr<Augmentation> make_rotate(const Settings& s) {
  return change_by(
      [degrees = s.number("DEGREES")](const Extent& extent, const uint8_t* in, uint8_t* out, Draw& draw) {
        const double angle = (2.0 * draw.random.uniform() - 1.0) * degrees * (3.14159265358979323846 / 180.0);
        // Coordinates in 1/65536 pixel, weights in 1/256: from here on integers only.
        const auto cosine = static_cast<int64_t>(std::lround(std::cos(angle) * 65536));
        const auto sine = static_cast<int64_t>(std::lround(std::sin(angle) * 65536));
        warp_loops().turn(in, extent.channels, extent.height, extent.width, cosine, sine, out);
      });
}

}  // namespace

MILLRACE_AUGMENTATION(rotate){.name = "rotate",
                              .doc = "turned about the centre; edges continue",
                              .place = 50,
                              .settings = {{"DEGREES", "at most, each way", 0.0, 0, 180}},
                              .make = make_rotate};

}  // namespace millrace::data
