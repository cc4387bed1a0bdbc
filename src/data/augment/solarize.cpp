// "solarize 128": values from the threshold on are inverted; torchvision's RandomSolarize.
#include "data/augment/changes.h"
#include "data/augment/colours.h"

namespace millrace::data {

MILLRACE_AUGMENTATION(solarize){
    .name = "solarize",
    .doc = "values from a threshold on are inverted",
    .place = 130,
    .settings = {{"THRESHOLD", "the first value that is", 128.0, 0, 256}, p_setting(0.5)},
    .make = [](const Settings& s) {
      return look_up_sometimes(s.number("p"), solarize_table(s.number("THRESHOLD")));
    }};

}  // namespace millrace::data
