// "randaugment 2 9": so many operations of 14 at that strength (of 30), one after the other; torchvision's
// RandAugment, but bilinear.
#include <cstring>

#include "data/augment/automatic.h"
#include "data/augment/changes.h"

namespace millrace::data {
namespace {

constexpr AutomaticReach kRandAugmentReach{.shear = 0.3,
                                           .rotate = 30,
                                           .enhance = 0.9,
                                           .translate = 0,
                                           .translate_share = 150.0 / 331,
                                           .posterize = 4};

std::unique_ptr<Augmentation> make_randaugment(const Settings& s) {
  const auto count = static_cast<int>(s.integer("COUNT"));
  const auto strength = static_cast<uint32_t>(s.integer("STRENGTH"));
  return change_by([count, strength](const Extent& extent, const uint8_t* in, uint8_t* out, Draw& draw) {
    thread_local std::vector<uint8_t> other;
    std::memcpy(out, in, extent.bytes());
    for (int i = 0; i < count; ++i) {
      const uint32_t kind = draw.random.below(automatic_kinds);
      const bool negative = draw.random.next() & 1;
      automatic_change(kRandAugmentReach, kind, strength, negative, extent, out, other);
    }
  });
}

}  // namespace

MILLRACE_AUGMENTATION(randaugment){.name = "randaugment",
                                   .doc = "COUNT operations of 14, one after the other",
                                   .place = 190,
                                   .settings = {{"COUNT", "of operations", int64_t{2}, 1, 20},
                                                {"STRENGTH", "of 30", int64_t{9}, 0, automatic_steps - 1}},
                                   .words_optional = true,
                                   .make = make_randaugment};

}  // namespace millrace::data
