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

MILLRACE_AUGMENTATION(autocontrast){.name = "autocontrast",
                                    .doc = "each channel stretched to 0…255",
                                    .place = 160,
                                    .settings = {p_setting(0.5)},
                                    .make = [](const Settings& s) -> std::unique_ptr<Augmentation> {
                                      return std::make_unique<Autocontrast>(s.number("p"));
                                    }};

}  // namespace millrace::data
