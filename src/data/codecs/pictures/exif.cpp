#include "data/codecs/pictures/exif.h"

#include <string_view>

#include "base/has_at.h"

namespace millrace::data {
namespace {

using Bytes8 = std::span<const uint8_t>;

/// The EXIF data in a file; empty where there is none.
Bytes8 exif_of_jpeg(Bytes8 file) {
  for (size_t at = 2; jpeg_segment(file, at);) {
    const uint8_t marker = file[at + 1];
    const size_t length = sized_number_at(file, at + 2, 2, true);
    if (marker == 0xda || marker == 0xd9 || length < 2 || length + 2 > file.size() - at) return {};
    constexpr std::string_view mark("Exif\0\0", 6);
    if (marker == 0xe1 && length >= 8 && has_at(file, at + 4, mark)) return file.subspan(at + 10, length - 8);
    at += 2 + length;
  }
  return {};
}

Bytes8 exif_of_png(Bytes8 file) {
  for (size_t at = 8; at <= file.size() && file.size() - at >= 12;) {
    const size_t length = sized_number_at(file, at, 4, true);
    if (length > file.size() - at - 12) return {};
    if (has_at(file, at + 4, "eXIf")) return file.subspan(at + 8, length);
    at += 12 + length;
  }
  return {};
}

Bytes8 exif_of_webp(Bytes8 file) {
  if (!has_at(file, 12, "VP8X")) return {};  // the others hold nothing but pixels
  for (size_t at = 12; at <= file.size() && file.size() - at >= 8;) {
    const size_t length = sized_number_at(file, at + 4, 4, false);
    if (length > file.size() - at - 8) return {};
    if (has_at(file, at, "EXIF")) {
      Bytes8 exif = file.subspan(at + 8, length);
      return has_at(exif, 0, "Exif") && length >= 6 ? exif.subspan(6) : exif;
    }
    at += 8 + length + length % 2;
  }
  return {};
}

}  // namespace

uint32_t sized_number_at(Bytes8 bytes, size_t at, int size, bool big) {
  uint32_t value = 0;
  for (int i = 0; i < size; ++i)
    value |= uint32_t{bytes[at + static_cast<size_t>(i)]} << 8 * (big ? size - 1 - i : i);
  return value;
}

bool jpeg_segment(Bytes8 file, size_t& at) {
  while (file.size() - at >= 4 && file[at] == 0xff) {
    const uint8_t marker = file[at + 1];
    const bool fill = marker == 0xff, alone = marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8);
    if (!fill && !alone) return true;
    at += fill ? 1 : 2;
  }
  return false;
}

std::optional<uint32_t> tiff_tag(Bytes8 tiff, uint16_t tag) {
  if (tiff.size() < 8) return {};
  const bool big = has_at(tiff, 0, {"MM\0*", 4});
  if (!big && !has_at(tiff, 0, {"II*\0", 4})) return {};
  const size_t directory = sized_number_at(tiff, 4, 4, big);
  if (directory > tiff.size() - 2) return {};
  const size_t entries = sized_number_at(tiff, directory, 2, big);
  for (size_t i = 0, at = directory + 2; i < entries && at + 12 <= tiff.size(); ++i, at += 12) {
    if (sized_number_at(tiff, at, 2, big) != tag) continue;
    const uint32_t type = sized_number_at(tiff, at + 2, 2, big);
    const int size = type == 1 ? 1 : type == 3 ? 2 : type == 4 ? 4 : 0;
    const uint64_t count = sized_number_at(tiff, at + 4, 4, big);
    if (size == 0 || count == 0) return {};
    if (count * static_cast<uint64_t>(size) <= 4) return sized_number_at(tiff, at + 8, size, big);
    const size_t elsewhere = sized_number_at(tiff, at + 8, 4, big);
    if (elsewhere > tiff.size() - static_cast<size_t>(size)) return {};
    return sized_number_at(tiff, elsewhere, size, big);
  }
  return {};
}

int exif_orientation(Bytes8 file) {
  Bytes8 exif;
  if (has_at(file, 0, "\xff\xd8"))
    exif = exif_of_jpeg(file);
  else if (has_at(file, 0, "\x89PNG\r\n\x1a\n"))
    exif = exif_of_png(file);
  else if (has_at(file, 0, "RIFF") && has_at(file, 8, "WEBP"))
    exif = exif_of_webp(file);
  if (exif.empty()) return 1;
  const uint32_t value = tiff_tag(exif, orientation_tag).value_or(1);
  return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
}

}  // namespace millrace::data
