// A task's model to and from checkpoints.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <millrace/array.h>

#include "task/task.h"
#include "train/checkpoint.h"

namespace millrace::train {

/// The task of a run folder with the model of its newest sound checkpoint, or of the one that `which` names
/// (load_checkpoint()); `warnings` gets a line for each damaged one. `changes` of its recipe
/// ("input.tta=flip") may be those that what is trained does not depend on: keys of [eval], and settings for
/// evaluation. InputError for others, and when the run has no checkpoint yet. Outputs are calibrated where
/// that was fitted for this checkpoint. `step`, where given, gets its number.
task::Task load_model(const std::filesystem::path& run, std::vector<std::string>& warnings,
                      std::span<const std::string> changes = {}, const std::string& which = "",
                      int64_t* step = nullptr);

/// Parameters, buffers, what was learnt from the data, and choices of kernels to and from a checkpoint.
/// InputError when they do not fit.
void store_model(const task::Task& task, Checkpoint& checkpoint);
/// `converts`: numbers may be stored as another type (a run that changed its precision).
void restore_model(task::Task& task, const Checkpoint& checkpoint, bool converts = false);
/// The checkpoint's tensor of that name; InputError when it is missing.
const Array& stored_array(const Checkpoint& checkpoint, const std::string& name);
/// Copies the checkpoint's tensor of that name; InputError when it is missing or of another type.
void restore_array(const Checkpoint& checkpoint, const std::string& name, Array& array,
                   bool converts = false);

}  // namespace millrace::train
