// Where things are kept that can be made again.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace millrace {

/// $MILLRACE_CACHE/NAME, else $XDG_CACHE_HOME/millrace/NAME, else ~/.cache/millrace/NAME; it may not exist
/// yet. nullopt when none of these variables is set.
std::optional<std::filesystem::path> cache_folder(std::string_view name);

}  // namespace millrace
