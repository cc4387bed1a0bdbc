// "solarize 128": values from the threshold on are inverted; torchvision's RandomSolarize.
#include "data/augment/augment.h"
#include "data/augment/colours.h"
#include "data/augment/sometimes.h"

namespace millrace::data {
namespace {

class Solarize final : public PassAugmentation {
 public:
  Solarize(double p, double threshold) : probability_(p), threshold_(threshold) {}
  bool collect(const Extent& /*extent*/, Draw& draw, Pass& pass) const override {
    if (draw.random.uniform() < probability_) pass.look_up(solarize_table(threshold_));
    return true;
  }

 private:
  double probability_;
  double threshold_;
};

}  // namespace

const AugmentationKind solarize_kind{"solarize", "solarize THRESHOLD [p=0.5]",
                                     [](AugmentationWords& words) -> std::unique_ptr<Augmentation> {
                                       const double threshold = words.number("THRESHOLD", 0, 256);
                                       return std::make_unique<Solarize>(probability(words, 0.5), threshold);
                                     }};

}  // namespace millrace::data
