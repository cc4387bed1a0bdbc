#include "data/formats/content.h"

#include <fstream>

#include "base/has_at.h"
#include "data/codecs/pictures/decode.h"

namespace millrace::data {

ColumnKind content_kind(std::span<const uint8_t> bytes) {
  if (is_picture_content(bytes)) return ColumnKind::picture;
  if ((has_at(bytes, 0, "RIFF") && has_at(bytes, 8, "WAVE")) || has_at(bytes, 0, "fLaC"))
    return ColumnKind::audio;
  if (bytes.empty()) return ColumnKind::bytes;
  for (const uint8_t byte : bytes)
    if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7f)
      return ColumnKind::bytes;
  return is_utf8({reinterpret_cast<const char*>(bytes.data()), bytes.size()}) ? ColumnKind::text
                                                                              : ColumnKind::bytes;
}

ColumnKind file_kind(const std::string& path) {
  uint8_t begin[64] = {};
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(begin), sizeof begin);
  return content_kind({begin, static_cast<size_t>(file.gcount())});
}

bool jpeg_size(std::span<const uint8_t> bytes, int& width, int& height) {
  if (!has_at(bytes, 0, "\xff\xd8")) return false;
  for (size_t at = 2; at + 4 <= bytes.size();) {
    if (bytes[at] != 0xff) return false;
    const uint8_t marker = bytes[at + 1];
    if (marker == 0xff || marker == 0x01 ||
        (marker >= 0xd0 && marker <= 0xd7)) {  // filling, or without length
      at += marker == 0xff ? 1 : 2;
      continue;
    }
    if (marker == 0xd9 || marker == 0xda) return false;
    // Start of frame; C4, C8 and CC are other things.
    if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
      if (at + 9 > bytes.size()) return false;
      height = bytes[at + 5] << 8 | bytes[at + 6];
      width = bytes[at + 7] << 8 | bytes[at + 8];
      return width > 0 && height > 0;
    }
    at += 2 + (bytes[at + 2] << 8 | bytes[at + 3]);
  }
  return false;
}

}  // namespace millrace::data
