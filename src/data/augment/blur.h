// Gaussian blur.
#pragma once

#include "data/augment/augment.h"

namespace millrace::data {

/// torchvision's gaussian_blur: `size` (odd) weights exp(-x²/2σ²) each way, the border reflected. In place;
/// sides of at least size / 2 + 1 pixels.
void gaussian_blur(const Extent& extent, uint8_t* planes, int size, double sigma);

}  // namespace millrace::data
