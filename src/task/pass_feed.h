// A feed for one pass over many samples.
#pragma once

#include <memory>

#include <millrace/dataset.h>

#include "task/task.h"
#include "task/task_feed.h"

namespace millrace::task {

/// As open_predictions(), and nothing stays in memory behind its batch: decoding goes on while the model
/// runs, from the first batch on.
TaskFeed open_pass(const Task& task, std::shared_ptr<const data::Dataset> samples);

}  // namespace millrace::task
