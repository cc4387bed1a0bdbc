// "trivialaugment": one operation of 14 at a random strength; torchvision's TrivialAugmentWide, but bilinear.
#include <cstring>

#include "data/augment/automatic.h"
#include "data/augment/changes.h"

namespace millrace::data {
namespace {

constexpr AutomaticReach kTrivialReach{
    .shear = 0.99, .rotate = 135, .enhance = 0.99, .translate = 32, .translate_share = 0, .posterize = 6};

void trivial_change(const Extent& extent, const uint8_t* in, uint8_t* out, Draw& draw) {
  thread_local std::vector<uint8_t> other;
  std::memcpy(out, in, extent.bytes());
  const uint32_t kind = draw.random.below(automatic_kinds), step = draw.random.below(automatic_steps);
  automatic_change(kTrivialReach, kind, step, draw.random.next() & 1, extent, out, other);
}

}  // namespace

MILLRACE_AUGMENTATION(trivialaugment){.name = "trivialaugment",
                                      .doc = "one operation of 14 at a random strength",
                                      .place = 200,
                                      .make = [](const Settings&) { return change_by(trivial_change); }};

}  // namespace millrace::data
