// "grey": colours become grey, one time in ten; torchvision's RandomGrayscale.
#include "data/augment/colours.h"
#include "data/augment/sometimes.h"

namespace millrace::data {
namespace {

class Grey final : public Sometimes {
 public:
  using Sometimes::Sometimes;
  void change(const Extent& extent, uint8_t* planes, Draw& /*draw*/) const override {
    if (extent.channels == 3) saturation(extent, planes, 0);
  }
};

}  // namespace

const AugmentationKind grey_kind{"grey", "grey [p=0.1]",
                                 [](AugmentationWords& words) -> std::unique_ptr<Augmentation> {
                                   return std::make_unique<Grey>(probability(words, 0.1));
                                 }};

}  // namespace millrace::data
