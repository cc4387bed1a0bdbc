// "solarize 128": values from the threshold on are inverted; torchvision's RandomSolarize.
#include "data/augment/augment.h"
#include "data/augment/colours.h"
#include "data/augment/sometimes.h"

namespace millrace::data {
namespace {

class Solarize final : public PassAugmentation {
 public:
  Solarize(double p, double threshold) : probability_(p), threshold_(threshold) {}
  bool collect(const Extent& /*extent*/, Draw& draw, Pass& pass) const override {
    if (draw.random.uniform() < probability_) pass.look_up(solarize_table(threshold_));
    return true;
  }

 private:
  double probability_;
  double threshold_;
};

}  // namespace

MILLRACE_AUGMENTATION(solarize){
    .name = "solarize",
    .doc = "values from a threshold on are inverted",
    .place = 130,
    .settings = {{"THRESHOLD", "the first value that is", 128.0, 0, 256}, p_setting(0.5)},
    .make = [](const Settings& s) -> std::unique_ptr<Augmentation> {
      return std::make_unique<Solarize>(s.number("p"), s.number("THRESHOLD"));
    }};

}  // namespace millrace::data
