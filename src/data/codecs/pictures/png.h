// PNG, with libpng.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/codecs/pictures/picture.h"

namespace millrace::data {

bool is_png(std::span<const uint8_t> bytes);

/// Decodes to grey or colour: palettes become colours, 16 bits become 8 (rounded), and
/// transparency is left out, as in Pillow's convert("RGB"). Returns "" or the reason why it cannot.
[[nodiscard]] std::string decode_png(std::span<const uint8_t> bytes, Picture& picture);

/// A PNG file of 8 bits a channel. `software`: what it says that it was made by; "": nothing.
std::vector<uint8_t> encode_png(const Picture& picture, std::string_view software = "");
/// Is it a file that encode_png() made with that?
bool is_png_by(std::span<const uint8_t> bytes, std::string_view software);

}  // namespace millrace::data
