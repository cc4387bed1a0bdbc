// Numbers that texts are.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace millrace {

/// Whether the whole text is a number of that type, in decimal digits; without a plus sign, and no blanks.
template <typename T>
bool parse_number(std::string_view text, T& number) {
  const char* const end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, number);
  return result.ec == std::errc() && result.ptr == end;
}

}  // namespace millrace
