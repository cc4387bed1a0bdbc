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

MILLRACE_AUGMENTATION(equalize){.name = "equalize",
                                .doc = "a flat histogram for each channel",
                                .place = 150,
                                .settings = {p_setting(0.5)},
                                .make = [](const Settings& s) -> std::unique_ptr<Augmentation> {
                                  return std::make_unique<Equalize>(s.number("p"));
                                }};

}  // namespace millrace::data
