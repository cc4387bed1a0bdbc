// "grey": colours become grey, one time in ten; torchvision's RandomGrayscale.
#include "data/augment/changes.h"
#include "data/augment/colours.h"

namespace millrace::data {

MILLRACE_AUGMENTATION(grey){
    .name = "grey",
    .doc = "without colours",
    .place = 110,
    .settings = {p_setting(0.1)},
    .make = [](const Settings& s) {
      return change_sometimes(
          s.number("p"), [](const Extent& extent, uint8_t* planes, Draw&) { saturation(extent, planes, 0); });
    }};

}  // namespace millrace::data
