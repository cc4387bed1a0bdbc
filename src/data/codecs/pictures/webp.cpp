#include <algorithm>
#include <memory>
#include <webp/decode.h>
#include <webp/demux.h>

#include "base/has_at.h"
#include "data/codecs/pictures/decoders.h"

namespace millrace::data {

namespace {

struct DeleteAnimation {
  void operator()(WebPAnimDecoder* decoder) const { WebPAnimDecoderDelete(decoder); }
};

/// On its canvas, whose size `picture` has.
std::string first_of_animation(std::span<const uint8_t> bytes, Picture& picture) {
  const WebPData data{bytes.data(), bytes.size()};
  WebPAnimDecoderOptions options;
  WebPAnimDecoderOptionsInit(&options);
  options.color_mode = MODE_RGBA;
  const std::unique_ptr<WebPAnimDecoder, DeleteAnimation> decoder(WebPAnimDecoderNew(&data, &options));
  uint8_t* canvas = nullptr;
  int time = 0;
  if (!decoder || !WebPAnimDecoderGetNext(decoder.get(), &canvas, &time)) return "truncated or damaged WebP";
  const size_t count = static_cast<size_t>(picture.height) * static_cast<size_t>(picture.width);
  picture.pixels.resize(3 * count);
  for (size_t i = 0; i < count; ++i) std::copy_n(canvas + 4 * i, 3, &picture.pixels[3 * i]);
  return {};
}

}  // namespace

bool is_webp(std::span<const uint8_t> bytes) { return has_at(bytes, 0, "RIFF") && has_at(bytes, 8, "WEBP"); }

std::string decode_webp(std::span<const uint8_t> bytes, Picture& picture) {
  WebPBitstreamFeatures features;
  if (const auto status = WebPGetFeatures(bytes.data(), bytes.size(), &features); status != VP8_STATUS_OK)
    return status == VP8_STATUS_NOT_ENOUGH_DATA ? "truncated" : "its WebP header is damaged";
  if (features.width < 1 || features.height < 1 || int64_t{features.width} * features.height > max_pixels)
    return "its WebP header is damaged or the picture is too large";
  picture.height = features.height;
  picture.width = features.width;
  picture.channels = 3;
  if (features.has_animation) return first_of_animation(bytes, picture);
  const size_t line = size_t{3} * static_cast<size_t>(features.width);
  picture.pixels.resize(line * static_cast<size_t>(features.height));
  if (!WebPDecodeRGBInto(bytes.data(), bytes.size(), picture.pixels.data(), picture.pixels.size(),
                         static_cast<int>(line)))
    return "truncated or damaged WebP";
  return {};
}

}  // namespace millrace::data
