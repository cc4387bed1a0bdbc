// Windows bitmaps (learn.microsoft.com/windows/win32/gdi/bitmap-storage): the uncompressed kinds.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/codecs/pictures/picture.h"

namespace millrace::data {

bool is_bmp(std::span<const uint8_t> bytes);

/// Decodes pictures of 1, 4 or 8 bits with a palette and of 24 or 32 bits, to colour, or to grey where the
/// palette is the 256 greys. Returns "" or the reason why it cannot: compressed, 16 bits, damaged, too large.
[[nodiscard]] std::string decode_bmp(std::span<const uint8_t> bytes, Picture& picture);

}  // namespace millrace::data
