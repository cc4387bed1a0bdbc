#include "base/cache_folder.h"

#include <cstdlib>

namespace millrace {

std::optional<std::filesystem::path> cache_folder(std::string_view name) {
  const auto variable = [](const char* of) -> std::optional<std::filesystem::path> {
    const char* value = std::getenv(of);
    if (!value || !*value) return std::nullopt;
    return std::filesystem::path(value);
  };
  if (const auto own = variable("MILLRACE_CACHE")) return *own / name;
  if (const auto xdg = variable("XDG_CACHE_HOME")) return *xdg / "millrace" / name;
  if (const auto home = variable("HOME")) return *home / ".cache" / "millrace" / name;
  return std::nullopt;
}

}  // namespace millrace
