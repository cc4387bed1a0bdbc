#include "data/augment/automatic.h"

#include <cmath>
#include <cstring>

#include "data/augment/colours.h"
#include "data/augment/warp.h"

namespace millrace::data {
namespace {

constexpr double kDegreesOfRadian = 180 / 3.14159265358979323846;

/// Shears about the top left corner, moves in whole pixels, and turns about the middle.
Projection projection(uint32_t kind, double amount, const Extent& extent) {
  const double whole = std::trunc(amount), lean = std::atan(amount) * kDegreesOfRadian;
  switch (kind) {
    case 1:
      return affine_projection({0, 0}, 0, {0, 0}, 1, {lean, 0});
    case 2:
      return affine_projection({0, 0}, 0, {0, 0}, 1, {0, lean});
    case 3:
      return affine_projection({0, 0}, 0, {whole, 0}, 1, {0, 0});
    case 4:
      return affine_projection({0, 0}, 0, {0, whole}, 1, {0, 0});
    default:
      return affine_projection({extent.width * 0.5, extent.height * 0.5}, amount, {0, 0}, 1, {0, 0});
  }
}

}  // namespace

void automatic_change(const AutomaticReach& reach, uint32_t kind, uint32_t step, bool negative,
                      const Extent& extent, uint8_t* planes, std::vector<uint8_t>& other) {
  const double strength = static_cast<double>(step) / (automatic_steps - 1), sign = negative ? -1 : 1;
  const double amounts[6] = {0,
                             reach.shear,
                             reach.shear,
                             reach.translate + reach.translate_share * extent.width,
                             reach.translate + reach.translate_share * extent.height,
                             reach.rotate};
  const double factor = 1 + sign * strength * reach.enhance;
  switch (kind) {
    case 0:
      return;
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
      other.assign(planes, planes + extent.bytes());
      return warp(extent, other.data(), planes, projection(kind, sign * strength * amounts[kind], extent), 0);
    case 6:
      return look_up(brightness_table(factor), planes, extent.bytes());
    case 7:
      return saturation(extent, planes, factor);
    case 8:
      return look_up(contrast_table(extent, planes, factor), planes, extent.bytes());
    case 9:
      return sharpness(extent, planes, factor);
    case 10:
      return look_up(posterize_table(8 - static_cast<int>(std::nearbyint(strength * reach.posterize))),
                     planes, extent.bytes());
    case 11:
      return look_up(solarize_table(255 * (1 - strength)), planes, extent.bytes());
    case 12:
      return autocontrast(extent, planes);
    default:
      return equalize(extent, planes);
  }
}

}  // namespace millrace::data
