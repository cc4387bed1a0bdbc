// Watching a training: what it says while it runs, and how it ended.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/metric.h>

namespace millrace::train {

using NamedValue = std::pair<std::string, double>;

/// Where a training stands.
struct Status {
  int64_t step = 0, steps = 0;
  double epoch = 0, epochs = 0;     // parts of the data gone through
  const char* unit = "samples";     // what samples are called
  int64_t samples = 0;              // seen in all
  double loss = 0;                  // over the epoch so far
  std::vector<NamedValue> metrics;  // of the outputs, over the epoch so far
  double per_second = 0;            // samples, lately
  double seconds_left = 0;
};

/// What the caller sees and may decide while something runs.
struct Observer {
  std::function<void(const Status&)> step = [](const Status&) {};
  /// One line for the user: what was found, epochs done, checkpoints passed over.
  std::function<void(const std::string&)> message = [](const std::string&) {};
  /// What takes a while outside of steps: reading, evaluating (what, done, total).
  std::function<void(const std::string&, int64_t, int64_t)> busy = [](const std::string&, int64_t, int64_t) {
  };
  /// True when the training is to stop after a checkpoint.
  std::function<bool()> stop = [] { return false; };
};

struct Outcome {
  bool finished = false;  // else stopped by the observer, with a checkpoint
  int64_t step = 0;
  bool tested = false;               // whether the recipe has a test set
  std::vector<eval::Measured> test;  // of the last evaluation
};

}  // namespace millrace::train
