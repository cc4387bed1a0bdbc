#include "base/utf8.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/format.h"

namespace millrace {
namespace {

/// Bytes of the character that begins there; 0 where none does. No overlong forms, surrogates and what lies
/// beyond U+10FFFF.
size_t character_at(std::string_view text, size_t i) {
  const auto byte = [&](size_t at) { return at < text.size() ? static_cast<uint8_t>(text[at]) : 0u; };
  const unsigned first = byte(i), second = byte(i + 1);
  const size_t more = first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  if ((first >= 0x80 && first < 0xc2) || first > 0xf4) return 0;
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
    return 0;
  for (size_t k = 1; k <= more; ++k)
    if ((byte(i + k) & 0xc0) != 0x80) return 0;
  return more + 1;
}

}  // namespace

size_t utf8_bytes(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const size_t bytes = static_cast<uint8_t>(text[i]) < 0x80 ? 1 : character_at(text, i);
    if (bytes == 0) break;
    i += bytes;
  }
  return i;
}

size_t code_points(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string stored_text(std::string_view text) {
  std::string stored;
  for (size_t i = 0; i < text.size();) {
    const size_t bytes = text.substr(i).starts_with("\\x") ? 0 : character_at(text, i);
    if (bytes == 0) stored += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[i]));
    stored += text.substr(i, bytes);
    i += bytes == 0 ? 1 : bytes;
  }
  return stored;
}

std::string text_of_stored(std::string_view stored) {
  std::string text;
  for (size_t i = 0; i < stored.size(); ++i) {
    uint8_t byte = 0;
    if (stored.substr(i).starts_with("\\x") && i + 4 <= stored.size()) {
      const char* const digits = stored.data() + i + 2;
      if (std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
        text += static_cast<char>(byte);
        i += 3;
        continue;
      }
    }
    text += stored[i];
  }
  return text;
}

std::string printable(std::string_view text) {
  std::string shown;
  for (const char c : text)
    if ((static_cast<uint8_t>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
      shown += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
    else
      shown += c;
  return shown;
}

}  // namespace millrace
