// A feed of a task, with the parts that fill it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <millrace/dataset.h>
#include <millrace/feed.h>

#include "data/feed/part.h"
#include "task/task.h"

namespace millrace::task {

/// A feed with what it is made of, which must stay.
struct TaskFeed {
  std::unique_ptr<data::Feed> feed;
  std::shared_ptr<const data::Dataset> samples;  // null of streams
  /// By input (and then by output, null where an input gives the targets).
  std::vector<std::shared_ptr<const data::Part>> inputs, outputs;
  /// Samples there are in all, of which `most` may have left some; of a stream those that count as an epoch.
  int64_t count = 0;
  /// Good samples from the beginning of streams, to learn from (valid before the feed's first next()); else
  /// null.
  std::shared_ptr<const data::Dataset> first;
};

/// What a training begins with: the task learnt from the recipe's training data (or as `known` has it), and
/// its feed.
struct Opened {
  Task task;
  TaskFeed training;
};
}  // namespace millrace::task
