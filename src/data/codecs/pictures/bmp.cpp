#include <cstdlib>

#include "base/format.h"
#include "data/codecs/pictures/decoders.h"

namespace millrace::data {
namespace {

uint32_t u16(const uint8_t* at) { return at[0] | uint32_t{at[1]} << 8; }
uint32_t u32(const uint8_t* at) { return u16(at) | u16(at + 2) << 16; }

constexpr size_t file_header = 14, info_header = 40;

bool is_grey(std::span<const uint8_t> palette, size_t entries) {
  for (size_t i = 0; i < entries; ++i)
    for (size_t c = 0; c < 3; ++c)
      if (palette[4 * i + c] != i) return false;
  return entries == 256;
}

}  // namespace

bool is_bmp(std::span<const uint8_t> bytes) {
  return bytes.size() >= file_header + info_header && bytes[0] == 'B' && bytes[1] == 'M' &&
         u32(bytes.data() + 14) >= info_header && u32(bytes.data() + 14) <= 124;
}

std::string decode_bmp(std::span<const uint8_t> bytes, Picture& picture) {
  const uint8_t* const head = bytes.data();
  const uint64_t pixels_at = u32(head + 10), header = u32(head + 14);
  const auto width = int64_t{static_cast<int32_t>(u32(head + 18))},
             signed_height = int64_t{static_cast<int32_t>(u32(head + 22))};
  const uint32_t bits = u16(head + 28), compression = u32(head + 30);
  uint64_t colours = u32(head + 46);
  const int64_t height = std::abs(signed_height);
  if (width < 1 || height < 1 || width > 65535 || height > 65535 || width * height > max_pixels)
    return "its BMP header is damaged or the picture is too large";
  // Masks of colours that are the usual bytes are written where there is transparency.
  const bool usual_masks = compression == 3 && bits == 32 && bytes.size() >= file_header + info_header + 12 &&
                           u32(head + 54) == 0xff0000 && u32(head + 58) == 0xff00 && u32(head + 62) == 0xff;
  if (compression != 0 && !usual_masks) return "it is a compressed BMP; uncompressed ones are supported";
  if (bits != 1 && bits != 4 && bits != 8 && bits != 24 && bits != 32)
    return fmt::format("its pixels have {} bits; 1, 4, 8, 24 and 32 are supported", bits);
  std::span<const uint8_t> palette;
  if (bits <= 8) {
    if (colours == 0) colours = uint64_t{1} << bits;
    if (colours > 256 || file_header + header + 4 * colours > bytes.size()) return "its palette is damaged";
    palette = bytes.subspan(file_header + header, 4 * colours);
  }
  const uint64_t line = (static_cast<uint64_t>(width) * bits + 31) / 32 * 4;
  if (pixels_at < file_header + header + palette.size() || pixels_at > bytes.size() ||
      (bytes.size() - pixels_at) / line < static_cast<uint64_t>(height))
    return "truncated: its pixels are not all there";

  const bool grey = bits == 8 && is_grey(palette, colours);
  picture.height = static_cast<int>(height);
  picture.width = static_cast<int>(width);
  picture.channels = grey ? 1 : 3;
  picture.pixels.resize(static_cast<size_t>(width * height * picture.channels));
  uint8_t* to = picture.pixels.data();
  for (int64_t y = 0; y < height; ++y) {
    // Rows go up unless the height is negative.
    const uint8_t* row =
        head + pixels_at + line * static_cast<uint64_t>(signed_height > 0 ? height - 1 - y : y);
    for (int64_t x = 0; x < width; ++x, to += picture.channels) {
      const uint8_t* from = row + x * (bits / 8);
      if (bits <= 8) {
        const auto bit = static_cast<uint64_t>(x) * bits;
        const uint32_t number = row[bit / 8] >> (8 - bits - bit % 8) & ((1U << bits) - 1);
        if (number >= colours) return "a pixel's colour is not in its palette";
        from = palette.data() + size_t{4} * number;
      }
      if (grey) {
        *to = *from;
        continue;
      }
      to[0] = from[2];
      to[1] = from[1];
      to[2] = from[0];
    }
  }
  return {};
}

}  // namespace millrace::data
