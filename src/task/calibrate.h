// Fits calibrations of a task's outputs on labelled samples.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <millrace/evaluation.h>

#include "task/feeds.h"
#include "task/task.h"

namespace millrace::task {

/// The outputs that the method applies to. InputError when there is no such method or metric, or it applies
/// to none: without any data.
std::vector<Output*> outputs_to_calibrate(const Task& task, const CalibrateOptions& options);

/// Gives every output that the method applies to a calibration, of the logits of one pass over the set (with
/// at most 512 MB of them). temperature and isotonic take the place of what was there; threshold decides on
/// top of it. InputError as outputs_to_calibrate().
std::vector<Calibrated> calibrate(Task& task, TaskFeed& set, const CalibrateOptions& options,
                                  const std::function<void(int64_t, int64_t)>& progress = nullptr);

}  // namespace millrace::task
