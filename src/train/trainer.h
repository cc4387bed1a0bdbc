// The training loop: recipe in, run folder out.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include <millrace/program.h>

#include "runtime/profile.h"
#include "task/recipe.h"
#include "train/run_folder.h"
#include "train/status.h"
#include "train/verdict.h"

namespace millrace::task {
struct Task;
struct TaskFeed;
}  // namespace millrace::task

namespace millrace::train {

struct TrainerState;  // trainer_state.h

class Trainer {
 public:
  /// `most_samples` > 0: only works on a sample of about so many, for estimates.
  Trainer(task::Recipe recipe, Observer observer, int64_t most_samples = 0);
  ~Trainer();

  /// A new run in `out` (or runs/<name>-<n>): opens the data and checks everything that can be checked before
  /// the first step (InputError or IoError), draws the weights, writes the recipe and the checkpoint of step
  /// 0.
  const RunFolder& begin(const std::filesystem::path& out, const std::string& name);
  /// Goes on with an existing run from its newest sound checkpoint, to the same bits as if it had never
  /// stopped. `overrides`: what holds from there on ("train.epochs=20"), as resume_changes() takes it; it
  /// stands in the run's journal.
  const RunFolder& resume(const RunFolder& run, std::span<const std::string> overrides = {});

  /// Runs steps as run() does but begins no run: nothing is written. `more` gets the times of each step and
  /// says whether another one follows. Error when the loss is not finite.
  void rehearse(const std::function<bool(const StepMarks&)>& more);
  /// The compiled step; builds it when that has not been done.
  Program& program();
  /// Of the rows of each compiled step, ascending; program() is the last one's before the first step. None
  /// where all rows are alike.
  std::vector<int64_t> lengths();
  /// The recipe with everything that the data decided; builds the step when that has not been done.
  const task::Recipe& recipe();
  /// What is trained, and on what; after begin(), resume() or program(). The feed of `tests` may be null.
  const task::Task& task() const;
  const task::TaskFeed& training() const;
  const task::TaskFeed& tests() const;
  /// Of what has been done so far.
  const Preparation& preparation() const;
  /// Of all steps so far but the first, which waits for the loader to begin.
  DataTimes data_times() const;
  /// Was the data the limit? data_verdict() with what could be done here.
  std::string verdict(const DataTimes& times) const;
  /// Evaluates once, as at the end of an epoch but the last; seconds. 0 without a test set.
  double rehearse_test();
  /// How often the last test runs the model on each sample.
  int views() const;

  /// To the end, or until the observer stops it. Takes what `millrace ctl` asks for between steps.
  /// InputError, after a checkpoint, when more samples are bad than data.most_bad allows. Checkpoints,
  /// metrics and events go to the run folder, at the end the ONNX model too. Error when the loss is not
  /// finite (it names the first operation that made it so), IoError when a file cannot be written.
  Outcome run();

 private:
  std::unique_ptr<TrainerState> state_;
};

}  // namespace millrace::train
