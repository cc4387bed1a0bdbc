// Characters and their classes, as Hugging Face's tokenizers see them; by ICU's tables (Unicode 15).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace::data {

/// The character at `at`, which moves behind it; U+FFFD of an ill-formed part (the longest beginning of a
/// character, else a byte).
char32_t next_character(std::string_view text, size_t& at);
/// The character that ends at `at`, which moves to its beginning.
char32_t previous_character(std::string_view text, size_t& at);
void append_utf8(char32_t character, std::string& text);
/// The bytes of the character that begins with this one.
inline size_t utf8_size(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}
int64_t count_characters(std::string_view text);

/// Each ill-formed part becomes U+FFFD.
std::string make_well_formed(std::string_view text);
inline bool ascii(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  return true;
}

bool is_space(char32_t c);   // White_Space
bool is_letter(char32_t c);  // L
bool is_number(char32_t c);  // N
bool is_word(char32_t c);    // \w: letters, marks, decimal numbers, connecting punctuation, joiners
/// As the tokenisers know them, whose tables of these stayed at Unicode 8 (marks: 9).
bool is_mark(char32_t c);         // M
bool is_punctuation(char32_t c);  // P, and ASCII's
bool is_control(char32_t c);      // Cc, Cf, Co
bool is_nonspacing(char32_t c);   // Mn

/// Small letters, character by character (no context: Σ is always σ).
std::string lower_case(std::string_view text);
/// Of the characters of Unicode 9, as the tokenizers have them.
enum class Form { nfc, nfd, nfkc, nfkd };
std::string normal_form(std::string_view text, Form form);

}  // namespace millrace::data
