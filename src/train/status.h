// What a training tells its caller, and what it found.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "eval/metric.h"

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

/// What the caller sees and may decide while a training runs.
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

/// What a trainer found, and how long its preparations took.
struct Preparation {
  const char* unit = "samples";            // what samples are called
  int64_t samples = 0, tests = 0;          // of the recipe's sets
  int64_t opened = 0, opened_tests = 0;    // of the samples worked on, else the same
  int64_t steps_per_epoch = 0, steps = 0;  // over the whole sets
  double epochs = 0;
  bool cached = false;      // samples are kept in memory
  double sample_bytes = 0;  // of one
  /// Seconds: finding out what the sources hold, learning from them and reading what is kept; the same of the test set; what the model
  /// takes from the data; compiling.
  double read = 0, read_tests = 0, fit = 0, compile = 0;
};

/// "loss 0.1234  accuracy 97.31 %"
std::string progress_text(double loss, const std::vector<NamedValue>& metrics);

}  // namespace millrace::train
