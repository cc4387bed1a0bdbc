// "posterize 4": keeps so many bits of each value; torchvision's RandomPosterize.
#include "data/augment/changes.h"
#include "data/augment/colours.h"

namespace millrace::data {

MILLRACE_AUGMENTATION(posterize){.name = "posterize",
                                 .doc = "only the first bits of each value are kept",
                                 .place = 140,
                                 .settings = {{"BITS", "that are kept", int64_t{8}, 1, 8}, p_setting(0.5)},
                                 .make = [](const Settings& s) {
                                   return look_up_sometimes(
                                       s.number("p"), posterize_table(static_cast<int>(s.integer("BITS"))));
                                 }};

}  // namespace millrace::data
