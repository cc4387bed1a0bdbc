// "random-shift 2": moves the picture by up to that many pixels each way; its edge pixels fill the gap.
#include "data/augment/random_move.h"

namespace millrace::data {

MILLRACE_AUGMENTATION(random_shift){
    .name = "random-shift",
    .doc = "moved; edges continue",
    .place = 40,
    .settings = {{"PIXELS", "at most, each way", int64_t{0}, 0, 4096}},
    .make = [](const Settings& s) { return random_move("random-shift", s.integer("PIXELS"), Border::edge); }};

}  // namespace millrace::data
