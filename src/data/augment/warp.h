// Pictures seen through a linear or projective map; shared by augmentations.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "data/augment/augment.h"

namespace millrace::data {

/// Where a pixel of the result comes from, in pixels (centres at .5): ((a x + b y + c) / w, (d x + e y + f) /
/// w) with w = g x + h y + 1. As Pillow's Image.transform takes it.
using Projection = std::array<double, 8>;

/// Bilinear, as Pillow's transform(PERSPECTIVE, BILINEAR); what lies outside is `fill`.
void warp(const Extent& extent, const uint8_t* in, uint8_t* out, const Projection& from, uint8_t fill);

inline Setting fill_setting() { return {"fill", "value of what lies outside", 0.0, 0, 255}; }

/// Turned about `centre` by `angle` and sheared (all in degrees), scaled and moved: torchvision's affine().
Projection affine_projection(std::pair<double, double> centre, double angle, std::pair<double, double> move,
                             double scale, std::pair<double, double> shear);

/// The map that brings the corners of a picture (top left, top right, bottom right, bottom left) to
/// `corners`.
Projection perspective_projection(int height, int width,
                                  const std::array<std::pair<double, double>, 4>& corners);

}  // namespace millrace::data
