// WebP, with libwebp.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/codecs/pictures/picture.h"

namespace millrace::data {

bool is_webp(std::span<const uint8_t> bytes);

/// Decodes lossy and lossless files, of an animation its first picture, to colour; transparency is left out.
/// Returns "" or the reason why it cannot.
[[nodiscard]] std::string decode_webp(std::span<const uint8_t> bytes, Picture& picture);

}  // namespace millrace::data
