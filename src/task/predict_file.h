// Predicting many samples into a file: reading, decoding, the model and writing at the same time, and again
// from where it was stopped.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "task/task.h"
#include "task/told.h"

namespace millrace::task {

/// How the caller follows a prediction and stops it.
struct PredictWatch {
  /// Asked between batches: what is done is kept, and the same call goes on from there.
  std::function<bool()> stop;
  std::function<void(int64_t done, int64_t total)> progress;
  std::function<void(const std::string& line)> note;
};

/// Where predictions go.
struct PredictTarget {
  std::string out;       // .csv, .tsv, .jsonl, .parquet, .arrow …, or .npy
  std::string identity;  // what they depend on besides data and other options: the model
  bool half = false;     // .npy: f16 instead of f32
  bool force = false;    // replace a file that is there
  PredictWatch watch;
};

struct PredictFileOptions : PredictTarget {
  TellOptions tell;
};

struct PredictFileResult {
  int64_t samples = 0, done = 0;  // in all; predicted, bad ones included
  int64_t resumed = 0;            // of these, by an earlier call
  int64_t bad = 0;
  std::vector<std::string> first_bad;  // some messages
  std::string bad_file;                // all of them, a line of JSON each; "" where there are none
  bool whole = false;                  // the file is there
};

/// `arguments` as for predict_arguments(), data of many samples each. Rows are in their order; a sample that
/// cannot be read has none (in .npy one of NaN) and stands in OUT.bad.jsonl. Until the file is whole there is
/// OUT.partial beside it. InputError, IoError.
PredictFileResult predict_file(Task& task, const std::vector<std::string>& arguments,
                               const PredictFileOptions& options);

}  // namespace millrace::task
