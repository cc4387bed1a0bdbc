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

const AugmentationKind pad_crop_kind{
    "pad-crop", "pad-crop PIXELS [zero]", [](AugmentationWords& words) -> std::unique_ptr<Augmentation> {
      const int padding = words.integer("PIXELS", 0, 4096);
      return std::make_unique<PadCrop>(padding, words.take("zero") ? Border::zero : Border::reflect);
    }};

}  // namespace millrace::data
