#include "data/codecs/pictures/webp.h"

#include <cstring>
#include <webp/decode.h>

namespace millrace::data {

bool is_webp(std::span<const uint8_t> bytes) {
  return bytes.size() >= 12 && std::memcmp(bytes.data(), "RIFF", 4) == 0 &&
         std::memcmp(bytes.data() + 8, "WEBP", 4) == 0;
}

std::string decode_webp(std::span<const uint8_t> bytes, Picture& picture) {
  if (!is_webp(bytes)) return "not a WebP file";
  WebPBitstreamFeatures features;
  if (const auto status = WebPGetFeatures(bytes.data(), bytes.size(), &features); status != VP8_STATUS_OK)
    return status == VP8_STATUS_NOT_ENOUGH_DATA ? "truncated" : "its WebP header is damaged";
  if (features.has_animation) return "it is an animation; still pictures are supported";
  if (features.width < 1 || features.height < 1 || int64_t{features.width} * features.height > max_pixels)
    return "its WebP header is damaged or the picture is too large";
  picture.height = features.height;
  picture.width = features.width;
  picture.channels = 3;
  const size_t line = size_t{3} * static_cast<size_t>(features.width);
  picture.pixels.resize(line * static_cast<size_t>(features.height));
  if (!WebPDecodeRGBInto(bytes.data(), bytes.size(), picture.pixels.data(), picture.pixels.size(),
                         static_cast<int>(line)))
    return "truncated or damaged WebP";
  return {};
}

}  // namespace millrace::data
