// Pictures of any format.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "data/codecs/pictures/picture.h"
#include "data/codecs/pictures/stored_picture.h"

namespace millrace::data {

/// Decodes a JPEG, PNG, WebP, TIFF, GIF (the first picture in it), BMP or binary Netpbm file from memory into
/// `picture`, whose memory is reused, and turns it upright as its EXIF says; the format is found from the
/// content. Returns "" or the reason why the bytes are no good picture (then `picture` is unspecified).
[[nodiscard]] std::string decode_picture(std::span<const uint8_t> bytes, Picture& picture);

/// The same of what may be stored as pixels.
[[nodiscard]] std::string decode_picture(const StoredPicture& stored, Picture& picture);

/// The formats that decode_picture knows, for messages: "JPEG, PNG …".
const char* picture_kinds();

/// Do these first bytes of a file (64 are enough) begin a picture, be it one that is not decoded here (HEIC)?
bool is_picture_content(std::span<const uint8_t> bytes);

/// True for the file names that pictures have (.jpg, .png, .tif, .heic …), in any case.
bool is_picture_name(std::string_view name);

}  // namespace millrace::data
