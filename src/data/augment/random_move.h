// Pictures moved by up to so many pixels each way: pad-crop and random-shift.
#pragma once

#include "base/format.h"
#include "data/augment/changes.h"

namespace millrace::data {

/// `name`: the augmentation's. `border`: what comes in.
inline std::unique_ptr<Augmentation> random_move(const char* name, int64_t pixels, Border border) {
  const int reach = static_cast<int>(pixels);
  return change_in_pass(
      [reach, border](Draw& draw, Pass& pass) {
        const uint32_t places = 2 * static_cast<uint32_t>(reach) + 1;
        const int down = static_cast<int>(draw.random.below(places)) - reach;
        const int right = static_cast<int>(draw.random.below(places)) - reach;
        return pass.window(down, right, border);
      },
      [name, reach](const Extent& extent) {
        if (reach >= extent.height || reach >= extent.width)
          fail<InputError>(
              "augmentation \"{} {}\": pictures of {}x{} are too small for it; use a smaller number", name,
              reach, extent.width, extent.height);
      });
}

}  // namespace millrace::data
