// Pictures moved by up to so many pixels each way: pad-crop and random-shift.
#pragma once

#include "base/format.h"
#include "data/augment/augment.h"

namespace millrace::data {

/// `name`: the augmentation's. `border`: what comes in.
class RandomMove final : public PassAugmentation {
 public:
  RandomMove(const char* name, int64_t reach, Border border)
      : name_(name), reach_(static_cast<int>(reach)), border_(border) {}

  void check(const Extent& extent) const override {
    if (reach_ >= extent.height || reach_ >= extent.width)
      fail<InputError>("augmentation \"{} {}\": pictures of {}x{} are too small for it; use a smaller number",
                       name_, reach_, extent.width, extent.height);
  }
  bool collect(const Extent& /*extent*/, Draw& draw, Pass& pass) const override {
    const uint32_t places = 2 * static_cast<uint32_t>(reach_) + 1;
    const int down = static_cast<int>(draw.random.below(places)) - reach_;
    const int right = static_cast<int>(draw.random.below(places)) - reach_;
    return pass.window(down, right, border_);
  }

 private:
  const char* name_;
  int reach_;
  Border border_;
};

}  // namespace millrace::data
