#include "data/codecs/pictures/picture_size.h"

#include <utility>

#include "base/has_at.h"
#include "data/codecs/pictures/exif.h"

namespace millrace::data {
namespace {

using View = std::span<const uint8_t>;

int64_t big(View bytes, size_t at, int size) { return sized_number_at(bytes, at, size, true); }
int64_t little(View bytes, size_t at, int size) { return sized_number_at(bytes, at, size, false); }

std::optional<PictureSize> webp_size(View bytes) {
  if (bytes.size() < 30) return {};
  if (has_at(bytes, 12, "VP8 "))
    return PictureSize{little(bytes, 26, 2) & 0x3fff, little(bytes, 28, 2) & 0x3fff, 3};
  if (has_at(bytes, 12, "VP8L")) {
    const int64_t word = little(bytes, 21, 4);
    return PictureSize{(word & 0x3fff) + 1, (word >> 14 & 0x3fff) + 1, 3};
  }
  if (has_at(bytes, 12, "VP8X")) return PictureSize{little(bytes, 24, 3) + 1, little(bytes, 27, 3) + 1, 3};
  return {};
}

/// "P5 # comment \n 640 480 255 …"
std::optional<PictureSize> netpbm_size(View bytes) {
  int64_t numbers[2] = {0, 0};
  size_t at = 2;
  for (int64_t& number : numbers) {
    while (at < bytes.size() && (bytes[at] == ' ' || bytes[at] == '\n' || bytes[at] == '\r' ||
                                 bytes[at] == '\t' || bytes[at] == '#')) {
      if (bytes[at] == '#')
        while (at < bytes.size() && bytes[at] != '\n') ++at;
      else
        ++at;
    }
    const size_t begin = at;
    for (; at < bytes.size() && bytes[at] >= '0' && bytes[at] <= '9' && at - begin < 9; ++at)
      number = 10 * number + (bytes[at] - '0');
    if (at == begin || at == bytes.size()) return {};
  }
  return PictureSize{numbers[0], numbers[1], bytes[1] == '5' ? 1 : 3};
}

std::optional<PictureSize> png_size(View bytes) {
  if (bytes.size() < 26) return {};
  constexpr int colour = 2;  // of colour types; a palette is one with another bit set
  return PictureSize{big(bytes, 16, 4), big(bytes, 20, 4), bytes[25] & colour ? 3 : 1};
}

std::optional<PictureSize> tiff_size(View bytes) {
  const auto width = tiff_tag(bytes, 256), height = tiff_tag(bytes, 257), colours = tiff_tag(bytes, 262);
  if (!width || !height) return {};
  PictureSize size{*width, *height, !colours ? 0 : *colours <= 1 ? 1 : 3};
  if (const auto turned = tiff_tag(bytes, orientation_tag); turned && *turned >= 5 && *turned <= 8)
    std::swap(size.width, size.height);
  return size;
}

/// As the file has it, before EXIF turns it.
std::optional<PictureSize> stored_size(View bytes) {
  if (has_at(bytes, 0, "\xff\xd8")) return jpeg_size(bytes);
  if (has_at(bytes, 0, "\x89PNG\r\n\x1a\n")) return png_size(bytes);
  if (has_at(bytes, 0, "GIF8") && bytes.size() >= 10)
    return PictureSize{little(bytes, 6, 2), little(bytes, 8, 2), 3};
  if (has_at(bytes, 0, "BM") && bytes.size() >= 26) {
    const auto height = static_cast<int32_t>(little(bytes, 22, 4));  // negative: rows from top to bottom
    return PictureSize{static_cast<int32_t>(little(bytes, 18, 4)), height < 0 ? -int64_t{height} : height};
  }
  if (has_at(bytes, 0, "RIFF") && has_at(bytes, 8, "WEBP")) return webp_size(bytes);
  if (has_at(bytes, 0, {"II*\0", 4}) || has_at(bytes, 0, {"MM\0*", 4})) return tiff_size(bytes);
  if (bytes.size() > 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6') return netpbm_size(bytes);
  return {};
}

}  // namespace

std::optional<PictureSize> jpeg_size(View bytes) {
  if (!has_at(bytes, 0, "\xff\xd8")) return {};
  for (size_t at = 2; jpeg_segment(bytes, at);) {
    const uint8_t marker = bytes[at + 1];
    const auto length = static_cast<size_t>(big(bytes, at + 2, 2));
    const bool frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (frame) {
      if (bytes.size() - at < 10) return {};
      const PictureSize size{big(bytes, at + 7, 2), big(bytes, at + 5, 2), bytes[at + 9] == 1 ? 1 : 3};
      return size.width > 0 && size.height > 0 ? std::optional(size) : std::nullopt;
    }
    if (marker == 0xda || marker == 0xd9 || length < 2 || length + 2 > bytes.size() - at) return {};
    at += 2 + length;
  }
  return {};
}

std::optional<PictureSize> picture_size(View bytes) {
  std::optional<PictureSize> size = stored_size(bytes);
  if (size && exif_orientation(bytes) >= 5) std::swap(size->width, size->height);
  return size;
}

}  // namespace millrace::data
