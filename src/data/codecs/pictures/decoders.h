// The kinds of pictures that are only read. Bytes are given to a decoder after they were asked for their
// kind.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/codecs/pictures/picture.h"

namespace millrace::data {

/// Decoders return "" or the reason why they cannot.

/// Windows bitmaps (learn.microsoft.com/windows/win32/gdi/bitmap-storage), the uncompressed kinds: of 1, 4 or
/// 8 bits with a palette and of 24 or 32 bits, to colour, or to grey where the palette is the 256 greys.
bool is_bmp(std::span<const uint8_t> bytes);
[[nodiscard]] std::string decode_bmp(std::span<const uint8_t> bytes, Picture& picture);

/// GIF, with giflib: the first picture, to colour. Where it does not cover the canvas, the rest is the
/// background colour, and its transparent pixels have the colours of their palette.
bool is_gif(std::span<const uint8_t> bytes);
[[nodiscard]] std::string decode_gif(std::span<const uint8_t> bytes, Picture& picture);

/// TIFF, with libtiff: the first picture of a file, upright: grey, RGB, palette, CMYK and YCbCr of 1 to 16
/// bits, in strips or tiles, compressed or not. 16 bits become 8 (rounded), transparency is left out.
bool is_tiff(std::span<const uint8_t> bytes);
[[nodiscard]] std::string decode_tiff(std::span<const uint8_t> bytes, Picture& picture);

/// WebP, with libwebp: lossy and lossless files, of an animation its first picture, to colour; transparency
/// is left out.
bool is_webp(std::span<const uint8_t> bytes);
[[nodiscard]] std::string decode_webp(std::span<const uint8_t> bytes, Picture& picture);

}  // namespace millrace::data
