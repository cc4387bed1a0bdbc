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

MILLRACE_AUGMENTATION(grey){.name = "grey",
                            .doc = "without colours",
                            .place = 110,
                            .settings = {p_setting(0.1)},
                            .make = [](const Settings& s) -> std::unique_ptr<Augmentation> {
                              return std::make_unique<Grey>(s.number("p"));
                            }};

}  // namespace millrace::data
