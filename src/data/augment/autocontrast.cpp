// "autocontrast": each channel stretched from 0 to 255; torchvision's RandomAutocontrast.
#include "data/augment/changes.h"
#include "data/augment/colours.h"

namespace millrace::data {

MILLRACE_AUGMENTATION(autocontrast){
    .name = "autocontrast",
    .doc = "each channel stretched to 0…255",
    .place = 160,
    .settings = {p_setting(0.5)},
    .make = [](const Settings& s) {
      return change_sometimes(
          s.number("p"), [](const Extent& extent, uint8_t* planes, Draw&) { autocontrast(extent, planes); });
    }};

}  // namespace millrace::data
