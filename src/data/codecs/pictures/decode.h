// Pictures of any format.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "data/codecs/pictures/picture.h"
#include "data/codecs/pictures/stored_picture.h"

namespace millrace::data {

/// Decodes a JPEG, PNG, WebP, GIF (its first picture), BMP or binary Netpbm file from memory into `picture`,
/// whose memory is reused; the format is found from the content. Returns "" or the reason why the bytes are
/// no good picture (then `picture` is unspecified).
[[nodiscard]] std::string decode_picture(std::span<const uint8_t> bytes, Picture& picture);

/// The same of what may be stored as pixels.
[[nodiscard]] std::string decode_picture(const StoredPicture& stored, Picture& picture);

/// The formats that decode_picture knows, for messages: "JPEG, PNG …".
const char* picture_kinds();

/// True for the file names that decode_picture is meant for: .jpg, .jpeg, .png, .webp, .gif, .bmp, .pgm, .ppm
/// in any case.
bool is_picture_name(std::string_view name);

}  // namespace millrace::data
