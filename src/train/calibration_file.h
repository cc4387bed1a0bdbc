// What `millrace calibrate` fitted for a checkpoint of a run: calibration.json in the run folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "task/task.h"

namespace millrace::train {

/// Writes the calibrations of the task's outputs; without any the file goes. `data`: what they were fitted
/// on.
void write_calibration(const std::filesystem::path& run, const task::Task& task, int64_t step,
                       const std::string& data);
/// Gives the outputs of the task, whose weights are those of that step, what is there. Where it is of another
/// step, `warnings` says so and nothing else happens. InputError when the file is damaged.
void read_calibration(const std::filesystem::path& run, task::Task& task, int64_t step,
                      std::vector<std::string>& warnings);
/// What the run's calibration was fitted on; "" where there is none.
std::string calibration_data(const std::filesystem::path& run);

}  // namespace millrace::train
