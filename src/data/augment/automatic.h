// The operations that randaugment and trivialaugment choose from.
#pragma once

#include <vector>

#include "data/augment/augment.h"

namespace millrace::data {

/// How strong the strongest of 31 steps is.
struct AutomaticReach {
  double shear, rotate, enhance;      // as a factor, in degrees, as a factor
  double translate, translate_share;  // in pixels and as a part of the side; the sum counts
  double posterize;                   // bits that are lost
};

constexpr int automatic_kinds = 14, automatic_steps = 31;

/// Operation `kind` (of torchvision's list: identity, shear x and y, translate x and y, rotate, brightness,
/// color, contrast, sharpness, posterize, solarize, autocontrast, equalize) at strength `step`; what has a
/// direction gets the one of `negative`. `other` is working memory.
void automatic_change(const AutomaticReach& reach, uint32_t kind, uint32_t step, bool negative,
                      const Extent& extent, uint8_t* planes, std::vector<uint8_t>& other);

}  // namespace millrace::data
