// What a training found before its first step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <millrace/training.h>

namespace millrace::train {

/// What a trainer found, and how long its preparations took.
struct Preparation {
  const char* unit = "samples";            // what samples are called
  int64_t samples = 0, tests = 0;          // of the recipe's sets
  int64_t opened = 0, opened_tests = 0;    // of the samples worked on, else the same
  int64_t steps_per_epoch = 0, steps = 0;  // over the whole sets
  double epochs = 0;
  bool cached = false;      // samples are kept in memory
  double sample_bytes = 0;  // of one
  /// Seconds: finding out what the sources hold, learning from them and reading what is kept; the same of the
  /// test set; what the model takes from the data; compiling.
  double read = 0, read_tests = 0, fit = 0, compile = 0;
};

/// "accuracy 97.31 %"
std::string metric_text(const NamedValue& metric);
/// "loss 0.1234  accuracy 97.31 %"
std::string progress_text(double loss, const std::vector<NamedValue>& metrics);

}  // namespace millrace::train
