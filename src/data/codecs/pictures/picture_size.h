// The size of an encoded picture from its header, without decoding it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace millrace::data {

/// Of the picture as it is decoded: upright.
struct PictureSize {
  int64_t width = 0, height = 0;
  int channels = 0;  // 1 grey, 3 colour, 0: the header does not say
};

/// Of JPEG (ITU T.81, B.2.2), PNG (W3C PNG, 11.2.1), TIFF, GIF, BMP, WebP (RFC 9649, 2.5 to 2.7) and Netpbm
/// files; nothing when the bytes are none of these or end before the size.
std::optional<PictureSize> picture_size(std::span<const uint8_t> bytes);

/// Of a JPEG file, before EXIF turns it.
std::optional<PictureSize> jpeg_size(std::span<const uint8_t> bytes);

}  // namespace millrace::data
