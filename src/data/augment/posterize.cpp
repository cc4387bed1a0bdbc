// "posterize 4": keeps so many bits of each value; torchvision's RandomPosterize.
#include "data/augment/augment.h"
#include "data/augment/colours.h"
#include "data/augment/sometimes.h"

namespace millrace::data {
namespace {

class Posterize final : public PassAugmentation {
 public:
  Posterize(double p, int bits) : probability_(p), bits_(bits) {}
  bool collect(const Extent& /*extent*/, Draw& draw, Pass& pass) const override {
    if (draw.random.uniform() < probability_) pass.look_up(posterize_table(bits_));
    return true;
  }

 private:
  double probability_;
  int bits_;
};

}  // namespace

MILLRACE_AUGMENTATION(posterize){.name = "posterize",
                                 .doc = "only the first bits of each value are kept",
                                 .place = 140,
                                 .settings = {{"BITS", "that are kept", int64_t{8}, 1, 8}, p_setting(0.5)},
                                 .make = [](const Settings& s) -> std::unique_ptr<Augmentation> {
                                   return std::make_unique<Posterize>(s.number("p"),
                                                                      static_cast<int>(s.integer("BITS")));
                                 }};

}  // namespace millrace::data
