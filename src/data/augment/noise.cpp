// "noise 8": to each value a number of a normal distribution with that deviation (of 255) is added.
#include <algorithm>
#include <cmath>

#include "data/augment/changes.h"

namespace millrace::data {
namespace {

std::unique_ptr<Augmentation> make_noise(const Settings& s) {
  return change_sometimes(
      s.number("p"), [deviation = s.number("DEVIATION")](const Extent& extent, uint8_t* planes, Draw& draw) {
        for (size_t i = 0; i < extent.bytes(); i += 2) {
          // Box and Muller: two uniform numbers become two normal ones. The first is never 0.
          const double size =
              deviation * std::sqrt(-2 * std::log(1 - static_cast<double>(draw.random.uniform())));
          const double angle = 2 * 3.14159265358979323846 * draw.random.uniform();
          const double parts[2] = {size * std::cos(angle), size * std::sin(angle)};
          for (size_t k = 0; k < 2 && i + k < extent.bytes(); ++k)
            planes[i + k] =
                static_cast<uint8_t>(std::clamp(std::nearbyint(planes[i + k] + parts[k]), 0.0, 255.0));
        }
      });
}

}  // namespace

MILLRACE_AUGMENTATION(noise){.name = "noise",
                             .doc = "normal noise",
                             .place = 180,
                             .settings = {{"DEVIATION", "of 255", 0.0, 0, 255}, p_setting(1)},
                             .make = make_noise};

}  // namespace millrace::data
