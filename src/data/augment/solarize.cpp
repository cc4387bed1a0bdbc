// "solarize 128": values from the threshold on are inverted; torchvision's RandomSolarize.
#include "data/augment/colours.h"
#include "data/augment/sometimes.h"

namespace millrace::data {
namespace {

class Solarize final : public Sometimes {
 public:
  Solarize(double p, double threshold) : Sometimes(p), threshold_(threshold) {}
  void change(const Extent& extent, uint8_t* planes, Draw& /*draw*/) const override {
    solarize(extent, planes, threshold_);
  }

 private:
  double threshold_;
};

}  // namespace

const AugmentationKind solarize_kind{"solarize", "solarize THRESHOLD [p=0.5]",
                                     [](AugmentationWords& words) -> std::unique_ptr<Augmentation> {
                                       const double threshold = words.number("THRESHOLD", 0, 256);
                                       return std::make_unique<Solarize>(probability(words, 0.5), threshold);
                                     }};

}  // namespace millrace::data
