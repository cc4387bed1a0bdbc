// "randaugment 2 9": so many operations of 14 at that strength (of 30), one after the other; torchvision's RandAugment, but
// bilinear.
#include <cstring>

#include "data/augment/automatic.h"

namespace millrace::data {
namespace {

constexpr AutomaticReach kRandAugmentReach{.shear = 0.3,
                                           .rotate = 30,
                                           .enhance = 0.9,
                                           .translate = 0,
                                           .translate_share = 150.0 / 331,
                                           .posterize = 4};

class RandAugment final : public Augmentation {
 public:
  RandAugment(int count, int strength) : count_(count), strength_(strength) {}

  void apply(const Extent& extent, const uint8_t* in, uint8_t* out, Draw& draw) const override {
    thread_local std::vector<uint8_t> other;
    std::memcpy(out, in, extent.bytes());
    for (int i = 0; i < count_; ++i) {
      const uint32_t kind = draw.random.below(automatic_kinds);
      const bool negative = draw.random.next() & 1;
      automatic_change(kRandAugmentReach, kind, static_cast<uint32_t>(strength_), negative, extent, out,
                       other);
    }
  }

 private:
  int count_, strength_;
};

}  // namespace

const AugmentationKind randaugment_kind{"randaugment", "randaugment [COUNT STRENGTH]",
                                        [](AugmentationWords& words) -> std::unique_ptr<Augmentation> {
                                          if (words.empty()) return std::make_unique<RandAugment>(2, 9);
                                          const int count = words.integer("COUNT", 1, 20);
                                          return std::make_unique<RandAugment>(
                                              count, words.integer("STRENGTH", 0, automatic_steps - 1));
                                        }};

}  // namespace millrace::data
