// "pad-crop 2": pads by reflection (or with zeros) and crops at a random place back to the size.
#include "data/augment/random_move.h"

namespace millrace::data {

MILLRACE_AUGMENTATION(pad_crop){.name = "pad-crop",
                                .doc = "padded by reflection, or zeros, and cut back at a random place",
                                .place = 10,
                                .settings = {{"PIXELS", "of padding on each side", int64_t{0}, 0, 4096},
                                             {"zero", "zeros instead of the reflection", false}},
                                .make = [](const Settings& s) {
                                  return random_move("pad-crop", s.integer("PIXELS"),
                                                     s.flag("zero") ? Border::zero : Border::reflect);
                                }};

}  // namespace millrace::data
