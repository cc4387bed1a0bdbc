// What feeds of training, evaluation and prediction have in common: parts, and rows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/feed/part.h"
#include "data/feed/row_plan.h"
#include "task/reading.h"
#include "task/task.h"
#include "task/task_feed.h"

namespace millrace::task {

/// The parts of all inputs and, with `targets`, of all outputs.
struct TaskParts {
  std::vector<data::NamedPart> named;
  /// As in TaskFeed.
  std::vector<std::shared_ptr<const data::Part>> inputs, outputs;
};
/// InputError where the samples lack something, or inputs do not go together: one whose rows are extracts of
/// a corpus is alone.
TaskParts parts_of(const Task& task, const Reading& reading, Purpose purpose, bool targets);

/// Does an input cut a corpus into rows?
bool cuts_corpus(const Task& task);
/// The input that decides on the rows of an epoch, and those; null and none where an order of samples does.
/// InputError when two do.
struct PlannedRows {
  const Input* input = nullptr;
  std::shared_ptr<const data::Part> part;  // its own
  std::unique_ptr<data::RowPlan> rows;
};
PlannedRows planned_rows(const Task& task, const TaskParts& parts, const Reading& reading, Purpose purpose,
                         int64_t batch);

/// Lines for the user: "train.csv: 60000 rows; 6 columns of numbers …", what inputs and outputs have to say.
std::vector<std::string> count_notes(const Task& task, const std::string& path, const std::string& samples);

/// Training on streams (data.stream), as open_training() has it.
Opened open_streams(Recipe recipe, const std::string& encoding, std::vector<std::string>& notes);

}  // namespace millrace::task
