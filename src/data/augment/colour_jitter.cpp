// "colour-jitter brightness=0.4 contrast=0.4 saturation=0.4 hue=0.1": random factors, in random order;
// torchvision's ColorJitter: a factor is uniform in [max(0, 1 - x), 1 + x], the hue's turn in [-x, x].
#include <algorithm>
#include <array>
#include <utility>

#include "data/augment/changes.h"
#include "data/augment/colours.h"

namespace millrace::data {
namespace {

std::unique_ptr<Augmentation> make_colour_jitter(const Settings& s) {
  using Range = std::pair<double, double>;
  const auto around = [&](const char* name) -> Range {
    const double reach = s.number(name);
    return {std::max(0.0, 1 - reach), 1 + reach};
  };
  const double turn = s.number("hue");
  const std::array<Range, 4> ranges = {around("brightness"), around("contrast"), around("saturation"),
                                       Range{-turn, turn}};
  return change_sometimes(s.number("p"), [ranges](const Extent& extent, uint8_t* planes, Draw& draw) {
    int order[4] = {0, 1, 2, 3};
    for (uint32_t i = 3; i > 0; --i) std::swap(order[i], order[draw.random.below(i + 1)]);
    // Drawn also where nothing is changed, so that one parameter does not move another's numbers.
    double factors[4];
    for (size_t k = 0; k < 4; ++k) factors[k] = between(draw, ranges[k]);
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
  });
}

}  // namespace

MILLRACE_AUGMENTATION(colour_jitter){.name = "colour-jitter",
                                     .doc = "random factors, in random order",
                                     .place = 100,
                                     .settings = {{"brightness", "1 ± so much", 0.0, 0, 10},
                                                  {"contrast", "1 ± so much", 0.0, 0, 10},
                                                  {"saturation", "1 ± so much", 0.0, 0, 10},
                                                  {"hue", "turned by ± so much of the circle", 0.0, 0, 0.5},
                                                  p_setting(1)},
                                     .make = make_colour_jitter};

}  // namespace millrace::data
