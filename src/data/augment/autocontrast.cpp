// "autocontrast": each channel stretched from 0 to 255; torchvision's RandomAutocontrast.
#include "data/augment/colours.h"
#include "data/augment/sometimes.h"

namespace millrace::data {
namespace {

class Autocontrast final : public Sometimes {
 public:
  using Sometimes::Sometimes;
  void change(const Extent& extent, uint8_t* planes, Draw& /*draw*/) const override {
    autocontrast(extent, planes);
  }
};

}  // namespace

const AugmentationKind autocontrast_kind{"autocontrast", "autocontrast [p=0.5]",
                                         [](AugmentationWords& words) -> std::unique_ptr<Augmentation> {
                                           return std::make_unique<Autocontrast>(probability(words, 0.5));
                                         }};

}  // namespace millrace::data
