// JPEG, with libjpeg-turbo.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/picture.h"

namespace millrace::data {

/// Largest picture that is decoded, in pixels: a damaged header must not ask for all memory.
inline constexpr int64_t max_pixels = int64_t{1} << 27;

/// Decodes grey and colour (YCbCr, RGB) files into `picture`, whose memory is reused. Returns "" or the
/// reason why it cannot: no JPEG, truncated, damaged, CMYK, too large.
[[nodiscard]] std::string decode_jpeg(std::span<const uint8_t> bytes, Picture& picture);

/// Encodes with the accurate integer DCT; `quality` 1 to 100. InputError for an empty picture or other
/// channel counts than 1 and 3.
std::vector<uint8_t> encode_jpeg(const Picture& picture, int quality);

}  // namespace millrace::data
