// The training loop: recipe in, run folder out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/profile.h"
#include "train/recipe.h"
#include "train/run_folder.h"
#include "train/verdict.h"

namespace millrace::train {

/// Where a training stands.
struct Status {
  int64_t step = 0, steps = 0;
  double epoch = 0, epochs = 0;   // parts of the data gone through
  const char* unit = "pictures";  // what samples are called
  int64_t pictures = 0;           // samples seen in all
  double loss = 0, accuracy = 0;  // over the epoch so far
  double per_second = 0;          // pictures, lately
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
  bool tested = false;                               // whether the recipe has a test set
  std::vector<std::pair<std::string, double>> test;  // of the last evaluation
};

/// What a trainer found, and how long its preparations took.
struct Preparation {
  const char* unit = "pictures";           // what samples are called
  int64_t pictures = 0, tests = 0;         // samples of the recipe's sets
  int64_t opened = 0, opened_tests = 0;    // of the samples worked on, else the same
  int64_t steps_per_epoch = 0, steps = 0;  // over the whole sets
  double epochs = 0;
  bool cached = false;       // decoded pictures are kept in memory
  double picture_bytes = 0;  // of a decoded one
  /// Seconds: finding out what the sources hold; decoding the pictures that are kept (or only the first); the sample for
  /// normalisation, of `sampled` pictures; compiling.
  double open = 0, read = 0, read_tests = 0, sample = 0, compile = 0;
  int64_t sampled = 0;
};

class Trainer {
 public:
  /// Opens the data and checks everything that can be checked before the first step. InputError or IoError.
  /// `most_pictures` > 0: only works on a sample of about so many, for estimates.
  Trainer(Recipe recipe, Observer observer, int64_t most_pictures = 0);
  ~Trainer();

  /// A new run in `out` (or runs/<name>-<n>): draws the weights, writes the recipe and the checkpoint of step 0.
  const RunFolder& begin(const std::filesystem::path& out, const std::string& name);
  /// Goes on with an existing run from its newest sound checkpoint, to the same bits as if it had never stopped.
  const RunFolder& resume(const RunFolder& run);

  /// Runs steps as run() does but begins no run: nothing is written. `more` gets the times of each step and says whether
  /// another one follows. Error when the loss is not finite.
  void rehearse(const std::function<bool(const StepMarks&)>& more);
  /// The compiled step; builds it when that has not been done.
  Program& program();
  /// Of what has been done so far.
  const Preparation& preparation() const;
  /// Of all steps so far but the first, which waits for the loader to begin.
  DataTimes data_times() const;
  /// Was the data the limit? data_verdict() with what could be done here.
  std::string verdict(const DataTimes& times) const;
  /// Evaluates once, as at the end of an epoch but the last; seconds. 0 without a test set.
  double rehearse_test();

  /// To the end, or until the observer stops it. Takes what `millrace ctl` asks for between steps. InputError, after a
  /// checkpoint, when more samples are bad than data.most_bad allows. Checkpoints, metrics and events go to the run folder, at the end the
  /// ONNX model too. Error when the loss is not finite (it names the first operation that made it so), IoError when a
  /// file cannot be written.
  Outcome run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace millrace::train
