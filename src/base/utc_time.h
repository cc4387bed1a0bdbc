// The time as files say it.
#pragma once

#include <chrono>
#include <ctime>
#include <string>

namespace millrace {

/// Now, in UTC, as "2026-01-31T12:00:00Z".
inline std::string utc_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

/// Now, in seconds since 1970.
inline double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace millrace
