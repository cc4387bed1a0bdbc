// Sizes of memory, and other numbers, as people write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <string>

#include "base/format.h"

namespace millrace {

/// Bytes, between 1 and 10^18, of "1.5GB", "800 MB" or "123456"; InputError, naming `what`, for anything
/// else.
inline double parse_bytes(const std::string& what, const std::string& text) {
  size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
  }
  std::string unit = text.substr(used);
  unit.erase(0, unit.find_first_not_of(' ') == std::string::npos ? unit.size() : unit.find_first_not_of(' '));
  const double scale = unit == "GB" ? 1e9 : unit == "MB" ? 1e6 : unit.empty() || unit == "B" ? 1 : 0;
  if (used == 0 || !(value * scale >= 1) || !(value * scale <= 1e18))
    fail<InputError>("{} takes a size such as 16GB or 800MB, not '{}'", what, text);
  return value * scale;
}

/// "1,234,567"
inline std::string thousands(int64_t value) {
  std::string text = fmt::format("{}", std::abs(value));
  for (ptrdiff_t at = static_cast<ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<size_t>(at), 1, ',');
  return value < 0 ? "-" + text : text;
}

/// "12.3 MB", of few bytes "123 bytes".
inline std::string memory_text(int64_t bytes) {
  return bytes < 100'000 ? fmt::format("{} bytes", bytes)
                         : fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6);
}

}  // namespace millrace
