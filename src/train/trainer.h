// The training loop: recipe in, run folder out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "train/recipe.h"
#include "train/run_folder.h"

namespace millrace::train {

/// Where a training stands.
struct Status {
  int64_t step = 0, steps = 0;
  double epoch = 0, epochs = 0;   // parts of the data gone through
  int64_t pictures = 0;           // seen in all
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

class Trainer {
 public:
  /// Opens the data and checks everything that can be checked before the first step. InputError or IoError.
  Trainer(Recipe recipe, Observer observer);
  ~Trainer();

  /// A new run in `out` (or runs/<name>-<n>): draws the weights, writes the recipe and the checkpoint of step 0.
  const RunFolder& begin(const std::filesystem::path& out, const std::string& name);
  /// Goes on with an existing run from its newest sound checkpoint, to the same bits as if it had never stopped.
  const RunFolder& resume(const RunFolder& run);

  /// What the compiled training step is made of; begins no run.
  std::string explain();

  /// To the end, or until the observer stops it. Checkpoints, metrics and events go to the run folder, at the end the
  /// ONNX model too. Error when the loss is not finite (it names the first operation that made it so), IoError when a
  /// file cannot be written.
  Outcome run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace millrace::train
