// "equalize": a flat histogram for each channel; torchvision's RandomEqualize.
#include "data/augment/colours.h"
#include "data/augment/sometimes.h"

namespace millrace::data {

MILLRACE_AUGMENTATION(equalize){.name = "equalize",
                                .doc = "a flat histogram for each channel",
                                .place = 150,
                                .settings = {p_setting(0.5)},
                                .make = [](const Settings& s) { return change_sometimes(s, equalize); }};

}  // namespace millrace::data
