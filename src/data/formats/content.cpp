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

std::string content_extension(std::span<const uint8_t> bytes) {
  if (has_at(bytes, 0, "\xff\xd8")) return "jpg";
  if (has_at(bytes, 0, "\x89PNG")) return "png";
  if (has_at(bytes, 0, "P5")) return "pgm";
  if (has_at(bytes, 0, "P6")) return "ppm";
  if (has_at(bytes, 0, "GIF8")) return "gif";
  if (has_at(bytes, 0, "BM")) return "bmp";
  if (has_at(bytes, 0, {"II*\0", 4}) || has_at(bytes, 0, {"MM\0*", 4})) return "tif";
  if (has_at(bytes, 0, "RIFF") && has_at(bytes, 8, "WEBP")) return "webp";
  if (has_at(bytes, 0, "RIFF") && has_at(bytes, 8, "WAVE")) return "wav";
  if (has_at(bytes, 0, "fLaC")) return "flac";
  if (has_at(bytes, 0, "ID3") || has_at(bytes, 0, "\xff\xfb")) return "mp3";
  return "";
}

ColumnKind file_kind(const std::string& path) {
  uint8_t begin[64] = {};
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(begin), sizeof begin);
  return content_kind({begin, static_cast<size_t>(file.gcount())});
}

}  // namespace millrace::data
