#include "data/codecs/text/unicode.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>
#include <unicode/utf8.h>

#include "base/format.h"

namespace millrace::data {
namespace {

/// Assigned in that version of Unicode at the latest.
bool known_to(int version, char32_t c) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  return age[0] <= version;
}

uint32_t category(char32_t c) { return U_MASK(u_charType(static_cast<UChar32>(c))); }

bool ascii_punctuation(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/// Those of Unicode 9; later ones stay as they are.
const icu::UnicodeSet& normalised_characters() {
  static const icu::UnicodeSet set = [] {
    UErrorCode status = U_ZERO_ERROR;
    icu::UnicodeSet made("[:Age=9.0:]", status);
    if (U_FAILURE(status))
      fail<InternalError>("ICU cannot list the characters of Unicode 9: {}", u_errorName(status));
    made.freeze();
    return made;
  }();
  return set;
}

}  // namespace

char32_t next_character(std::string_view text, size_t& at) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  if (bytes[at] < 0x80) return bytes[at++];
  auto i = static_cast<int64_t>(at);
  const auto size = static_cast<int64_t>(text.size());
  UChar32 c = 0;
  U8_NEXT_OR_FFFD(bytes, i, size, c);
  at = static_cast<size_t>(i);
  return static_cast<char32_t>(c);
}

char32_t previous_character(std::string_view text, size_t& at) {
  size_t begin = at - 1;
  while (begin > 0 && at - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) --begin;
  at = begin;
  return next_character(text, begin);
}

void append_utf8(char32_t character, std::string& text) {
  char buffer[U8_MAX_LENGTH];
  int size = 0;
  U8_APPEND_UNSAFE(buffer, size, static_cast<UChar32>(character));
  text.append(buffer, static_cast<size_t>(size));
}

int64_t count_characters(std::string_view text) {
  int64_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return count;
}

std::string make_well_formed(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) append_utf8(next_character(text, at), result);
  return result;
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return u_isUWhiteSpace(static_cast<UChar32>(c));
}
bool is_letter(char32_t c) {
  if (c < 0x80) return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
  return category(c) & U_GC_L_MASK;
}
bool is_number(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return category(c) & U_GC_N_MASK;
}
// Some characters have changed their class since.
bool is_mark(char32_t c) {
  return ((category(c) & U_GC_M_MASK) && known_to(9, c) && c != 0x111c9) || c == 0x1cf2 || c == 0x1cf3;
}
bool is_word(char32_t c) {
  if (c < 0x80) return is_letter(c) || is_number(c) || c == '_';
  return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_ALPHABETIC) ||
         (category(c) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) || c == 0x200c || c == 0x200d;
}
bool is_punctuation(char32_t c) {
  if (c < 0x80) return ascii_punctuation(c);
  return ((category(c) & U_GC_P_MASK) && known_to(8, c)) || c == 0x166d || c == 0x111c9;
}
bool is_control(char32_t c) {
  return (category(c) & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) && known_to(8, c);
}
bool is_nonspacing(char32_t c) {
  if (c < 0x300) return false;
  if (c == 0x1734) return true;
  return (category(c) & U_GC_MN_MASK) && known_to(8, c) && c != 0x1885 && c != 0x1886 && c != 0xa9bd &&
         c != 0x111c9;
}

std::string lower_case(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_character(text, at);
    if (c < 0x80)
      result += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    else if (c == 0x130)  // İ, the only letter whose small form is two characters
      result += "i\xcc\x87";
    else
      append_utf8(static_cast<char32_t>(u_tolower(static_cast<UChar32>(c))), result);
  }
  return result;
}

std::string normal_form(std::string_view text, Form form) {
  if (ascii(text)) return std::string(text);
  if (text.size() > size_t{1} << 30)
    fail<InputError>("a text of {} bytes is too long to be normalised: cut it into several", text.size());
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* all = form == Form::nfc    ? icu::Normalizer2::getNFCInstance(status)
                                : form == Form::nfd  ? icu::Normalizer2::getNFDInstance(status)
                                : form == Form::nfkc ? icu::Normalizer2::getNFKCInstance(status)
                                                     : icu::Normalizer2::getNFKDInstance(status);
  std::string result;
  if (U_SUCCESS(status)) {
    const icu::FilteredNormalizer2 normaliser(*all, normalised_characters());
    icu::StringByteSink<std::string> sink(&result);
    normaliser.normalizeUTF8(0, {text.data(), static_cast<int32_t>(text.size())}, sink, nullptr, status);
  }
  if (U_FAILURE(status)) fail<InternalError>("ICU cannot normalise a text: {}", u_errorName(status));
  return result;
}

}  // namespace millrace::data
