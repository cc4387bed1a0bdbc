// "posterize 4": keeps so many bits of each value; torchvision's RandomPosterize.
#include "data/augment/augment.h"
#include "data/augment/colours.h"
#include "data/augment/sometimes.h"

namespace millrace::data {
namespace {

class Posterize final : public PassAugmentation {
 public:
  Posterize(double p, int bits) : probability_(p), bits_(bits) {}
  bool collect(const Extent& /*extent*/, Draw& draw, Pass& pass) const override {
    if (draw.random.uniform() < probability_) pass.look_up(posterize_table(bits_));
    return true;
  }

 private:
  double probability_;
  int bits_;
};

}  // namespace

const AugmentationKind posterize_kind{"posterize", "posterize BITS [p=0.5]",
                                      [](AugmentationWords& words) -> std::unique_ptr<Augmentation> {
                                        const int bits = words.integer("BITS", 1, 8);
                                        return std::make_unique<Posterize>(probability(words, 0.5), bits);
                                      }};

}  // namespace millrace::data
