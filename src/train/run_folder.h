// The folder of one training: recipe.toml, metrics.jsonl, events, checkpoints/, model.onnx.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "task/recipe.h"

namespace millrace::train {

/// runs/<name>-<number>
std::filesystem::path run_path(const std::string& name, int number);
/// The highest number of the runs in runs/ that are called so; 0 when there is none.
int newest_run(const std::string& name);

class RunFolder {
 public:
  /// A new run: `out`, or runs/<name>-<n> with the number after the highest. Writes recipe.toml and locks the
  /// folder. InputError when `out` holds a run already.
  static RunFolder create(const std::filesystem::path& out, const std::string& name,
                          const task::Recipe& recipe);
  /// An existing one; InputError when `path` is no run folder (the message lists those that are near).
  static RunFolder open(const std::filesystem::path& path);

  /// Keeps other processes from training in the folder for as long as this object or a copy of it lives.
  /// InputError when one does already.
  void lock();
  /// Does a process train here? False too where the file system knows no locks.
  bool in_use() const;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path recipe() const { return path_ / "recipe.toml"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  /// Samples that could not be read.
  std::filesystem::path bad_samples() const { return path_ / "bad_samples.jsonl"; }
  /// What was changed while training ran, and where requests for that wait.
  std::filesystem::path journal() const { return path_ / "control.jsonl"; }
  std::filesystem::path requests() const { return path_ / "control"; }
  /// Steps whose update was not made, and rollbacks (bad_steps.h).
  std::filesystem::path bad_steps() const { return path_ / "recovery.jsonl"; }
  /// Where it comes from: a line for each time that it was begun or gone on with (origin.h).
  std::filesystem::path origin() const { return path_ / "origin.jsonl"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  /// What was fitted on top of a checkpoint (calibration_file.h).
  std::filesystem::path calibration() const { return path_ / "calibration.json"; }
  std::filesystem::path model() const { return path_ / "model.onnx"; }

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
  std::shared_ptr<void> lock_;
};

/// task::anchor_paths for a run's recipe. Files that its model is made of (nn::Architecture::ending) are kept
/// in the run, in model/: of the model, or of each branch in model/NAME/. Where they are, they are named
/// instead of those that the recipe names.
void anchor_run_paths(const std::filesystem::path& run, task::Recipe& recipe);

/// The recipe, checked, that a path names: its own, or that of the run folder there.
task::Recipe recipe_of(const std::filesystem::path& path, std::span<const std::string> overrides = {});

}  // namespace millrace::train
