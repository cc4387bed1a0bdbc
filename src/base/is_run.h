// Telling folders of runs from folders of data.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/contains.h"

namespace millrace {

/// Is it the folder of a training, which has its recipe and its checkpoints? False for what cannot be looked
/// at.
inline bool is_run(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(folder / "recipe.toml", ignored) &&
         std::filesystem::is_directory(folder / "checkpoints", ignored);
}

/// Is it called as one of those that a training writes into its folder (train/run_folder.h) or an export of
/// it? All else there is the user's.
inline bool is_of_run(std::string_view name) {
  constexpr std::string_view names[] = {"recipe.toml",   "checkpoints",       "control",   "control.jsonl",
                                        "metrics.jsonl", "bad_samples.jsonl", "model.onnx"};
  return name.starts_with("events.out.tfevents.") || contains(names, name);
}

}  // namespace millrace
