// Texts that are numbers.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace millrace {

/// The number that a whole text is, without blanks, a + in front or anything behind it; nullopt where it is
/// none, or one that T does not hold.
template <typename T = int64_t>
std::optional<T> number_from(std::string_view text) {
  T number{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && rest == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace millrace
