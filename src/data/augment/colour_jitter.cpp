// "colour-jitter brightness=0.4 contrast=0.4 saturation=0.4 hue=0.1": random factors, in random order;
// torchvision's ColorJitter: a factor is uniform in [max(0, 1 - x), 1 + x], the hue's turn in [-x, x].
#include <algorithm>
#include <utility>

#include "data/augment/colours.h"
#include "data/augment/sometimes.h"

namespace millrace::data {
namespace {

struct Jitter {
  std::pair<double, double> brightness, contrast, saturation, hue;
};

class ColourJitter final : public Sometimes {
 public:
  ColourJitter(double p, const Jitter& jitter) : Sometimes(p), jitter_(jitter) {}

  void change(const Extent& extent, uint8_t* planes, Draw& draw) const override {
    int order[4] = {0, 1, 2, 3};
    for (uint32_t i = 3; i > 0; --i) std::swap(order[i], order[draw.random.below(i + 1)]);
    // Drawn also where nothing is changed, so that one parameter does not move another's numbers.
    const double factors[4] = {between(draw, jitter_.brightness), between(draw, jitter_.contrast),
                               between(draw, jitter_.saturation), between(draw, jitter_.hue)};
    // Brightness and contrast are tables: they wait for one another.
    Pass pass;
    const auto look = [&] {
      pass.run_in_place(extent, planes);
      pass = {};
    };
    for (const int kind : order) {
      if (factors[kind] == (kind == 3 ? 0 : 1)) continue;
      if (kind == 0) pass.look_up(brightness_table(factors[0]));
      if (kind != 0) look();
      if (kind == 1) pass.look_up(contrast_table(extent, planes, factors[1]));
      if (kind == 2) saturation(extent, planes, factors[2]);
      if (kind == 3) hue(extent, planes, factors[3]);
    }
    look();
  }

 private:
  Jitter jitter_;
};

}  // namespace

MILLRACE_AUGMENTATION(colour_jitter){
    .name = "colour-jitter",
    .doc = "random factors, in random order",
    .place = 100,
    .settings = {{"brightness", "1 ± so much", 0.0, 0, 10},
                 {"contrast", "1 ± so much", 0.0, 0, 10},
                 {"saturation", "1 ± so much", 0.0, 0, 10},
                 {"hue", "turned by ± so much of the circle", 0.0, 0, 0.5},
                 p_setting(1)},
    .make = [](const Settings& s) -> std::unique_ptr<Augmentation> {
      const auto factor = [&](const char* name) -> std::pair<double, double> {
        const double reach = s.number(name);
        return {std::max(0.0, 1 - reach), 1 + reach};
      };
      const double turn = s.number("hue");
      return std::make_unique<ColourJitter>(
          s.number("p"),
          Jitter{factor("brightness"), factor("contrast"), factor("saturation"), {-turn, turn}});
    }};

}  // namespace millrace::data
