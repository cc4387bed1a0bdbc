// "flip": the mirror image half of the time.
#include "data/augment/changes.h"

namespace millrace::data {

MILLRACE_AUGMENTATION(flip){
    .name = "flip", .doc = "the mirror image half of the time", .place = 20, .make = [](const Settings&) {
      return change_in_pass([](Draw& draw, Pass& pass) {
        if (draw.random.next() & 1) pass.mirror();
        return true;
      });
    }};

}  // namespace millrace::data
