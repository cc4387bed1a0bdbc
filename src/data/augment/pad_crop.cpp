// "pad-crop 2": pads by reflection (or with zeros) and crops at a random place back to the size.
#include "base/format.h"
#include "data/augment/augment.h"

namespace millrace::data {
namespace {

class PadCrop final : public PassAugmentation {
 public:
  PadCrop(int padding, Border border) : padding_(padding), border_(border) {}

  void check(const Extent& extent) const override {
    if (padding_ >= extent.height || padding_ >= extent.width)
      fail<InputError>(
          "augmentation \"pad-crop {}\": pictures of {}x{} are too small for it; use a smaller number",
          padding_, extent.width, extent.height);
  }
  bool collect(const Extent& /*extent*/, Draw& draw, Pass& pass) const override {
    const uint32_t places = 2 * static_cast<uint32_t>(padding_) + 1;
    const int down = static_cast<int>(draw.random.below(places)) - padding_;
    const int right = static_cast<int>(draw.random.below(places)) - padding_;
    return pass.window(down, right, border_);
  }

 private:
  int padding_;
  Border border_;
};

}  // namespace

MILLRACE_AUGMENTATION(pad_crop){.name = "pad-crop",
                                .doc = "padded by reflection, or zeros, and cut back at a random place",
                                .place = 10,
                                .settings = {{"PIXELS", "of padding on each side", int64_t{0}, 0, 4096},
                                             {"zero", "zeros instead of the reflection", false}},
                                .make = [](const Settings& s) -> std::unique_ptr<Augmentation> {
                                  return std::make_unique<PadCrop>(
                                      static_cast<int>(s.integer("PIXELS")),
                                      s.flag("zero") ? Border::zero : Border::reflect);
                                }};

}  // namespace millrace::data
