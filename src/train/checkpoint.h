// Checkpoints: the whole state of a training in one safetensors file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <millrace/error.h>

#include "track/safetensors.h"

namespace millrace::train {

/// Everything that a resume needs besides the recipe. Tensor names carry what they belong to
/// ("model.head.weight", "optimizer.head.weight.momentum").
struct Checkpoint {
  int64_t step = 0;
  std::map<std::string, int64_t> counters;     // epoch, place in the data …
  std::map<std::string, double> sums;          // running metrics of the epoch, kept to the last bit
  std::map<std::string, std::string> choices;  // of kernels, made by timing
  std::string encoding;                        // Task::encoding(): what was learnt from the data
  track::NamedArrays tensors;

  /// Null where there is none.
  const Array* tensor(const std::string& name) const;
  /// 0 where there is none.
  int64_t counter(const std::string& name) const;
};

/// The file is sound, but its schema is not the one this program reads.
class SchemaError : public InputError {
 public:
  using InputError::InputError;
};

/// Writes one file atomically; IoError leaves an older file as it was.
void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);
/// IoError or InputError when the file is damaged; SchemaError when another version of Millrace wrote it.
Checkpoint read_checkpoint(const std::filesystem::path& path);

/// "step-00000042.safetensors"
std::string checkpoint_name(int64_t step);
/// The checkpoints in a folder, oldest first.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& folder);

/// Writes checkpoint_name() into the folder and then removes all but the `keep` newest and that of step
/// `keep_too`. When it cannot be written the IoError names the newest checkpoint that stays.
void save_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint, int64_t keep,
                     int64_t keep_too = -1);

/// Keeps the checkpoint of that step, which is in the folder, as the best one, in one step.
void keep_as_best(const std::filesystem::path& folder, const Checkpoint& checkpoint);

/// The newest sound checkpoint, and one line for each damaged newer one that was passed over. Nothing when
/// the folder has no checkpoint; IoError when it has only damaged ones; SchemaError when the newest is of
/// another schema.
struct Loaded {
  Checkpoint checkpoint;
  std::filesystem::path path;
  std::vector<std::string> warnings;
};
std::optional<Loaded> load_newest_checkpoint(const std::filesystem::path& folder);
/// The checkpoint that a user names: "" or "last", the newest sound one; "best" (train.keep_best); or the
/// number of its step. InputError when there is none.
Loaded load_checkpoint(const std::filesystem::path& run, const std::string& which);

}  // namespace millrace::train
