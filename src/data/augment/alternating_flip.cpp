// "alternating-flip": the mirror image every other epoch; which half of the samples begins with it is decided
// by a hash of the sample (K. Jordan, "94% on CIFAR-10 in 3.29 seconds", arXiv 2404.00498, section 3.6).
#include "data/augment/changes.h"

namespace millrace::data {

MILLRACE_AUGMENTATION(alternating_flip){
    .name = "alternating-flip",
    .doc = "the mirror image every other epoch",
    .place = 30,
    .make = [](const Settings&) {
      return change_in_pass([](Draw& draw, Pass& pass) {
        const uint32_t hash = RandomStream(draw.seed, 0x666c6970, static_cast<uint64_t>(draw.index)).next();
        if ((hash + static_cast<uint64_t>(draw.epoch)) & 1) pass.mirror();
        return true;
      });
    }};

}  // namespace millrace::data
