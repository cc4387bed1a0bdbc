// "equalize": a flat histogram for each channel; torchvision's RandomEqualize.
#include "data/augment/colours.h"
#include "data/augment/sometimes.h"

namespace millrace::data {
namespace {

class Equalize final : public Sometimes {
 public:
  using Sometimes::Sometimes;
  void change(const Extent& extent, uint8_t* planes, Draw& /*draw*/) const override {
    equalize(extent, planes);
  }
};

}  // namespace

const AugmentationKind equalize_kind{"equalize", "equalize [p=0.5]",
                                     [](AugmentationWords& words) -> std::unique_ptr<Augmentation> {
                                       return std::make_unique<Equalize>(probability(words, 0.5));
                                     }};

}  // namespace millrace::data
