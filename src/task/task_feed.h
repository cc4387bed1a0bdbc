// A feed of a task, with the parts that fill it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <millrace/dataset.h>
#include <millrace/feed.h>

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

/// To the beginning of its first epoch.
inline void to_start(data::Feed& feed) {
  data::Cursor start = feed.cursor();
  start.epoch = start.position = 0;
  feed.seek(start);
}

/// Which rows count in one pass through a set: samples that stand in for bad ones count once.
class CountedRows {
 public:
  bool counts(const data::FeedBatch& batch, size_t row) {
    if (batch.samples.empty()) return true;
    const auto sample = static_cast<size_t>(batch.samples[row]);
    if (sample >= seen_.size()) seen_.resize(std::max(sample + 1, 2 * seen_.size()));
    const bool first = !seen_[sample];
    seen_[sample] = true;
    return first;
  }

 private:
  std::vector<bool> seen_;  // samples, where rows are those
};

/// What a training begins with: the task learnt from the recipe's training data (or as `known` has it), and
/// its feed.
struct Opened {
  Task task;
  TaskFeed training;
};
}  // namespace millrace::task
