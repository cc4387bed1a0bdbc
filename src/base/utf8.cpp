#include "base/utf8.h"

#include <cstdint>

namespace millrace {

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t at) { return at < text.size() ? static_cast<uint8_t>(text[at]) : 0u; };
    const unsigned first = byte(i);
    const size_t more = first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    if ((first >= 0x80 && first < 0xc2) || first > 0xf4) return false;
    unsigned second = byte(i + 1);
    // Overlong forms, surrogates and what lies beyond U+10FFFF.
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
      return false;
    for (size_t k = 1; k <= more; ++k)
      if ((byte(i + k) & 0xc0) != 0x80) return false;
    i += more + 1;
  }
  return true;
}

std::string stored_text(std::string_view text) {
  if (is_utf8(text) && !text.starts_with('\1')) return std::string(text);
  std::string stored = "\1";
  for (const char letter : text) {
    const auto byte = static_cast<uint8_t>(letter);
    if (byte >= 0x80) stored += static_cast<char>(0xc0 | byte >> 6);
    stored += static_cast<char>(byte >= 0x80 ? 0x80 | (byte & 0x3f) : byte);
  }
  return stored;
}

std::string text_of_stored(std::string_view stored) {
  if (!stored.starts_with('\1')) return std::string(stored);
  std::string text;
  for (size_t i = 1; i < stored.size(); ++i) {
    const auto byte = static_cast<uint8_t>(stored[i]);
    const bool two = byte >= 0x80 && i + 1 < stored.size();
    text += static_cast<char>(two ? (byte & 0x03) << 6 | (static_cast<uint8_t>(stored[++i]) & 0x3f) : byte);
  }
  return text;
}

}  // namespace millrace
