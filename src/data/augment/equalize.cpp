// "equalize": a flat histogram for each channel; torchvision's RandomEqualize.
#include "data/augment/changes.h"
#include "data/augment/colours.h"

namespace millrace::data {

MILLRACE_AUGMENTATION(equalize){
    .name = "equalize",
    .doc = "a flat histogram for each channel",
    .place = 150,
    .settings = {p_setting(0.5)},
    .make = [](const Settings& s) {
      return change_sometimes(s.number("p"),
                              [](const Extent& extent, uint8_t* planes, Draw&) { equalize(extent, planes); });
    }};

}  // namespace millrace::data
