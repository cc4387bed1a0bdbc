// "posterize 4": keeps so many bits of each value; torchvision's RandomPosterize.
#include "data/augment/colours.h"
#include "data/augment/sometimes.h"

namespace millrace::data {
namespace {

class Posterize final : public Sometimes {
 public:
  Posterize(double p, int bits) : Sometimes(p), bits_(bits) {}
  void change(const Extent& extent, uint8_t* planes, Draw& /*draw*/) const override {
    posterize(extent, planes, bits_);
  }

 private:
  int bits_;
};

}  // namespace

const AugmentationKind posterize_kind{"posterize", "posterize BITS [p=0.5]",
                                      [](AugmentationWords& words) -> std::unique_ptr<Augmentation> {
                                        const int bits = words.integer("BITS", 1, 8);
                                        return std::make_unique<Posterize>(probability(words, 0.5), bits);
                                      }};

}  // namespace millrace::data
