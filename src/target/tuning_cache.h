// What was found fastest on this machine, kept on disk: measured once, used ever after.
#pragma once

#include <optional>
#include <string>

namespace millrace {

/// The provider that won for a problem on this type of CPU; nullopt when it was never measured or there is no
/// cache. The cache is $MILLRACE_CACHE/choices, else millrace/choices under $XDG_CACHE_HOME or ~/.cache.
/// Thread-safe.
std::optional<std::string> tuned_choice(const std::string& problem);

/// Keeps a choice for this process and, where the disk allows, for later ones.
void keep_choice(const std::string& problem, const std::string& choice);

}  // namespace millrace
