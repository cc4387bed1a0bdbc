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

}  // namespace millrace::data
