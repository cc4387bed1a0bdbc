// The feeds of a task: batches to train on, to test on, to predict.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <millrace/dataset.h>
#include <millrace/feed.h>

#include "task/open.h"
#include "task/reading.h"
#include "task/task.h"
#include "task/task_feed.h"

namespace millrace::task {

/// `most` > 0: only a sample of about so many, for estimates. `encoding`: of a run that goes on, else empty.
/// Messages for the user go to `notes`.
Opened open_training(Recipe recipe, const std::string& encoding, int64_t most, const ReadProgress& progress,
                     std::vector<std::string>& notes);
/// What the recipe tests on, or `path` or the samples `given` instead; a null feed where there is none.
/// `memory_used`: of data.memory, by the training.
TaskFeed open_tests(const Task& task, const std::string& path, int64_t most, int64_t memory_used,
                    const ReadProgress& progress, std::vector<std::string>& notes,
                    const std::shared_ptr<const data::Dataset>& given = nullptr);
/// Samples that the program has, as those of files are once they are opened: arrays that are columns of
/// numbers as such, rows that belong together (data.group) as one.
std::shared_ptr<const data::Dataset> as_opened(const Task& task,
                                               std::shared_ptr<const data::Dataset> samples);
/// Samples without targets, in order. `batch`: rows of a batch; 0: as for a test set of these samples.
TaskFeed open_predictions(const Task& task, std::shared_ptr<const data::Dataset> samples, int64_t batch = 0);

}  // namespace millrace::task
