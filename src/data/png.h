// PNG, with libpng.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/picture.h"

namespace millrace::data {

bool is_png(std::span<const uint8_t> bytes);

/// Decodes to grey or colour: palettes become colours, 16 bits become 8 (rounded), and
/// transparency is left out, as in Pillow's convert("RGB"). Returns "" or the reason why it cannot.
[[nodiscard]] std::string decode_png(std::span<const uint8_t> bytes, Picture& picture);

}  // namespace millrace::data
