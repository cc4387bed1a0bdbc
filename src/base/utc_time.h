// The time as files say it.
#pragma once

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

}  // namespace millrace
