// Changes of colours with the arithmetic of Pillow's ImageEnhance and ImageOps, in place or as tables; shared
// by augmentations.
#pragma once

#include <cstddef>
#include <cstdint>

#include "data/augment/augment.h"
#include "data/augment/pass.h"

namespace millrace::data {

/// Each value becomes what a table, such as those below, has for it.
void look_up(const Table& table, uint8_t* values, size_t count);

/// ImageEnhance: 0 black, 1 as it is, 2 twice as bright.
Table brightness_table(double factor);
/// 0: the mean grey of this picture everywhere.
Table contrast_table(const Extent& extent, const uint8_t* planes, double factor);
/// 0: grey. Grey pictures stay.
void saturation(const Extent& extent, uint8_t* planes, double factor);
/// 0: smoothed, 2: sharpened.
void sharpness(const Extent& extent, uint8_t* planes, double factor);
/// Turns the hue by -0.5 to 0.5 of the circle (through Pillow's 8-bit HSV). Grey pictures stay.
void hue(const Extent& extent, uint8_t* planes, double turn);

/// Values from the threshold on are inverted.
Table solarize_table(double threshold);
/// Keeps so many of the 8 bits.
Table posterize_table(int bits);
/// A flat histogram, each channel for itself.
void equalize(const Extent& extent, uint8_t* planes);
/// The darkest value becomes 0 and the brightest 255, each channel for itself.
void autocontrast(const Extent& extent, uint8_t* planes);

}  // namespace millrace::data
