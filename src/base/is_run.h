// Telling folders of runs from folders of data.
#pragma once

#include <filesystem>

namespace millrace {

/// Is it the folder of a training, which has its recipe and its checkpoints? False for what cannot be looked
/// at.
inline bool is_run(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(folder / "recipe.toml", ignored) &&
         std::filesystem::is_directory(folder / "checkpoints", ignored);
}

}  // namespace millrace
