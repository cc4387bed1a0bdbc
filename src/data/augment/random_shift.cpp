// "random-shift 2": moves the picture by up to that many pixels each way; its edge pixels fill the gap.
#include "base/format.h"
#include "data/augment/augment.h"

namespace millrace::data {
namespace {

class RandomShift final : public PassAugmentation {
 public:
  explicit RandomShift(int reach) : reach_(reach) {}

  void check(const Extent& extent) const override {
    if (reach_ >= extent.height || reach_ >= extent.width)
      fail<InputError>(
          "augmentation \"random-shift {}\": pictures of {}x{} are too small for it; use a smaller number",
          reach_, extent.width, extent.height);
  }
  bool collect(const Extent& /*extent*/, Draw& draw, Pass& pass) const override {
    const uint32_t places = 2 * static_cast<uint32_t>(reach_) + 1;
    const int down = static_cast<int>(draw.random.below(places)) - reach_;
    const int right = static_cast<int>(draw.random.below(places)) - reach_;
    return pass.window(down, right, Border::edge);
  }

 private:
  int reach_;
};

}  // namespace

MILLRACE_AUGMENTATION(random_shift){
    .name = "random-shift",
    .doc = "moved; edges continue",
    .place = 40,
    .settings = {{"PIXELS", "at most, each way", int64_t{0}, 0, 4096}},
    .make = [](const Settings& s) -> std::unique_ptr<Augmentation> {
      return std::make_unique<RandomShift>(static_cast<int>(s.integer("PIXELS")));
    }};

}  // namespace millrace::data
