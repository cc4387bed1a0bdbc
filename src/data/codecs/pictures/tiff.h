// TIFF, with libtiff.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/codecs/pictures/picture.h"

namespace millrace::data {

bool is_tiff(std::span<const uint8_t> bytes);

/// Decodes the first picture of a file, upright: grey, RGB, palette, CMYK and YCbCr of 1 to 16 bits, in
/// strips or tiles, compressed or not. 16 bits become 8 (rounded), transparency is left out. Returns "" or
/// the reason why it cannot.
[[nodiscard]] std::string decode_tiff(std::span<const uint8_t> bytes, Picture& picture);

}  // namespace millrace::data
