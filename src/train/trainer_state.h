// What a training is made of while it runs: trainer_build.cpp (what comes before the first step),
// trainer_steps.cpp (a step, an epoch's end), trainer_recovery.cpp (bad steps) and trainer_saves.cpp
// (checkpoints, journals) share it.
#pragma once

#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include <millrace/error.h>

#include "nn/models/fitted.h"
#include "optim/schedules/schedule.h"
#include "task/task_feed.h"
#include "train/averages.h"
#include "train/bad_steps.h"
#include "train/freeze.h"
#include "train/quarantine.h"
#include "train/run_folder.h"
#include "train/status.h"
#include "train/verdict.h"

// What only some of those files need is named here, and included there.
namespace millrace {
struct StepMarks;
namespace optim {
class Lookahead;
class TrainStep;
}  // namespace optim
namespace task {
class FitLoss;
class Predictor;
struct ShownRow;
}  // namespace task
namespace track {
class Recorder;
struct Exhibit;
struct Names;
}  // namespace track
}  // namespace millrace

namespace millrace::train {

class CheckpointWriter;
class Control;
class Passes;
struct Change;
struct Checkpoint;

using Clock = std::chrono::steady_clock;

/// Under which a run that goes on finds the time that it had taken.
constexpr const char* hours_key = "system/hours";

/// What was done and used up to a moment.
struct Progress {
  double seconds = 0, cpu = 0, waiting = 0, samples = 0, tokens = 0;
};

struct TrainerState {
  TrainerState();
  ~TrainerState();

  task::Task task;  // its recipe is the training's
  Observer observer;
  task::TaskFeed training, tests;    // the feed of `tests` may be null
  std::set<int64_t> bad, bad_tests;  // samples already named as unreadable
  std::optional<RunFolder> run;

  /// One for each of the feed's lengths (key 0 where it has none); they share the optimiser's state.
  std::map<int64_t, std::unique_ptr<optim::TrainStep>> by_length;
  optim::TrainStep* step = nullptr;  // the one that ran last, or runs
  /// Of a model that is fitted instead, whose steps are rounds; then there is no step.
  std::unique_ptr<nn::Fitting> fitting;
  nn::FitData fit_rows;  // its samples
  std::unique_ptr<task::FitLoss> fit_loss;
  int64_t rounds_done = 0, best_saved = -1;
  std::unique_ptr<task::Predictor> predictor;
  std::unique_ptr<optim::Lookahead> lookahead;
  std::optional<WeightMean> mean;        // with train.swa
  std::optional<Statistics> statistics;  // where the mean's must be measured anew
  optim::Schedule schedule;
  optim::Watched watched;          // of a schedule that goes by measurements
  std::unique_ptr<Passes> passes;  // of an optimiser that goes by the loss of all samples
  std::vector<Freeze> freezes;
  std::unique_ptr<track::Recorder> log;
  std::shared_ptr<const track::Names> step_names;  // of what a step's records hold
  std::unique_ptr<Control> control;
  std::optional<BadList> bad_list;
  std::unique_ptr<CheckpointWriter> writer;      // from the first checkpoint on that is written aside
  int64_t bad_listed = 0, bad_tests_listed = 0;  // counts when last looked at

  LossWatch losses;         // with train.loss_spike
  bool rehearsing = false;  // steps are only timed: they go on as long as that takes, whatever the loss
  int64_t bad_in_row = 0, bad_in_epoch = 0;
  int64_t bad_steps = 0, rollbacks = 0;  // of the whole run: those skipped, and those gone back from
  double rollback_factor = 1;            // of the rate
  int64_t rollback_step = 0;             // the checkpoint to go back to
  bool rolled_back = false;              // in the step that was made last
  bool converts = false;   // the run had several precisions: a checkpoint may have weights of another type
  bool replaying = false;  // changes that the steps are built with already

  int64_t most_samples = 0;       // > 0: a sample
  std::vector<std::string> told;  // notes on the samples to train on
  Preparation prepared;
  mutable std::optional<task::CheaperSamples> cheaper;  // once it was asked for
  int64_t steps_per_epoch = 0, total = 0;
  double loss_sum = 0;     // of this epoch's steps
  bool epoch_due = false;  // they, or a round, are made, the test is not
  bool mean_due = false;   // what layers know of the data is not measured with the newest mean
  std::vector<NamedValue> sums;
  std::vector<eval::Measured> last_test;
  std::set<std::string> undefined_told;                    // metrics without a value
  double best = std::numeric_limits<double>::quiet_NaN();  // by train.keep_best; NaN: none yet
  int64_t best_step = -1;
  int64_t tests_waited = 0;  // since it was best
  Clock::time_point last_checkpoint, epoch_begin;
  double step_seconds = 0, test_seconds = 0;  // lately
  double saving_seconds = 0;                  // that the epoch's checkpoints held it up
  bool first_step = true;                     // since the loader was put to its place
  int64_t timed = 0;                          // samples
  double timed_seconds = 0, timed_waiting = 0;
  DataTimes epoch_times, first_times;      // when the epoch, or the first of several, began
  int64_t times_told = 0;                  // verdicts
  Clock::time_point begun = Clock::now();  // run()
  double seconds_before = 0;               // of the run, before that
  int64_t samples_seen = 0, tokens_seen = 0;
  std::map<int64_t, int64_t> tokens_of;  // a row, by its length
  Progress epoch_since, details_since;
  std::shared_ptr<const track::Names> detail_names;  // of what is logged every train.log_every steps
  std::vector<task::ShownRow> shown_rows;            // of the last test

  const task::Recipe& recipe() const { return task.recipe; }
  data::Feed& feed() const { return *training.feed; }
  int64_t done() const;
  task::ReadProgress reading() {
    return
        [this](const std::string& what, int64_t at, int64_t of) { observer.busy("reading " + what, at, of); };
  }

  // ---- before the first step

  /// Of an epoch's steps: those of the whole training.
  static int64_t steps_of(const task::Recipe& recipe, int64_t in_epoch);
  /// `encoding`: what a run that goes on has learnt from the data; else empty.
  void open_data(const std::string& encoding);
  void open_tests();
  void build(const Checkpoint* from);
  void build_steps();
  void build_predictor();
  void make_schedule();
  /// The arrays of a step: the feed's, and with passes what those add.
  std::vector<data::Field> step_fields() const;

  // ---- models that are fitted (trainer_fit.cpp)

  void build_fitted(const Checkpoint* from);
  /// One more round, with its tests, logs and progress.
  void one_round();
  std::vector<eval::Measured> test_round(bool last);
  /// What the rounds so far have learnt becomes the network's.
  void store_rounds(int64_t rounds);
  /// What is predicted of the test's samples that are shown.
  void show_fitted_samples();
  /// Writes the best one of the rounds so far, where that is another than it was.
  void save_best_round();

  // ---- steps

  /// Makes the step of that length the one that runs.
  void choose_step(int64_t length);
  void freeze();
  /// False, and nothing done, when the observer stops it while it waits for data.
  bool one_step(StepMarks* marks = nullptr);
  /// The next batch; null when the observer stops it before. What goes wrong is thrown after a checkpoint.
  const data::FeedBatch* take_batch();
  /// What part of a full batch the last step had. Less than 1 only in passes: others leave out what fills
  /// none.
  double batch_share() const;
  /// So many of the epoch's steps count in its means: a batch that is not full by its share.
  double counted_steps() const;
  void apply_lookahead();
  /// What goes wrong with data in it is thrown after a checkpoint, from which it is gone through again.
  void end_epoch();
  /// A value of an epoch: by key, and by curve where it is one.
  struct Summary {
    std::string key, curve;
    double value = 0;
  };

  // ---- tests, and what follows from them (trainer_tests.cpp)

  /// The averages that are tested and exported instead of the weights; empty: none.
  Averaged averages();
  void build_mean();
  /// At the end of an epoch: the weights, then what layers know of the data with them.
  void add_to_mean();
  void measure_mean();
  /// Says of each metric that the last test has no value of why that is, once.
  void tell_undefined();
  /// The test after an epoch, as it is reported; gives what is compared with others.
  std::vector<eval::Measured> run_test(bool last);
  /// Puts into the last epoch's line how far the loss went with the test's first metric, or train.keep_best;
  /// says so where it did not.
  std::string compare_loss(double loss, std::vector<Summary>& values) const;
  /// Is it the best so far?
  void compare_with_best(const std::vector<eval::Measured>& metrics);
  /// Of a schedule that goes by measurements: by these, or by the mean loss of the epoch.
  void measure_schedule(const std::vector<eval::Measured>& metrics, double loss);
  /// By train.early_stopping.
  bool ends_early() const;
  void report(double seconds);
  /// What of a status is of time and place, after a step of so many samples; `epoch`: of how many steps.
  void tell_pace(Status& status, double seconds, int64_t samples, int64_t epoch);
  /// The sums of so many steps as means.
  std::vector<NamedValue> means(double steps) const;
  DataTimes data_times() const;
  std::string verdict(const DataTimes& times) const;
  void tell_verdict(const DataTimes& times, const std::string& of);

  // ---- what is logged besides (trainer_details.cpp)

  Progress progress() const;
  /// How far and how fast it goes, and what it uses, `since` then, which becomes now.
  std::vector<Summary> progress_values(Progress& since) const;
  /// Every train.log_every steps.
  void log_details();
  void add_norms(std::vector<Summary>& values) const;
  /// `made` is called by the thread of the logs.
  void show(std::function<std::vector<track::Exhibit>()> made);
  /// Every train.histograms epochs.
  void show_histograms();
  void show_samples();

  // ---- bad steps (trainer_recovery.cpp)

  /// Does the step's graph have to look out for them?
  static bool guards(const task::Recipe& recipe);
  /// After a step: does what train.on_bad_step says of one that is bad. Error where the training ends.
  void judge_step(double loss);
  /// What is wrong with the last step: names the operation.
  std::string why_bad(double loss) const;
  /// "the loss of step 4 is infinite (that of price)", of several outputs those that are to blame.
  std::string loss_of_step(double loss) const;
  [[noreturn]] void stop_at_bad_step(const std::string& why, const std::string& which);
  void note_bad_step(BadStep noted);
  /// The checkpoint to go back to.
  Checkpoint rollback_target();
  void roll_back(const std::string& why);

  // ---- what is written

  Checkpoint checkpoint() const;
  /// Writes a checkpoint. `aside`: by the writer's thread where its memory allows that, else it is on the
  /// disk when this returns. `planned`: it would be there had the training never been stopped.
  void save(bool aside = false, bool planned = false);
  /// What `reads` gives, which reads data: an error of theirs is thrown after a checkpoint.
  template <typename Reads>
  auto or_saved(Reads&& reads) {
    try {
      return reads();
    } catch (const InputError& error) {
      throw InputError(saved_after(error.what()));
    } catch (const IoError& error) {
      throw IoError(saved_after(error.what()));
    }
  }
  /// The same of tests, which are made once more from that checkpoint: what they compared is not in it.
  template <typename Tests>
  void test_or_saved(Tests&& tests_made) {
    or_saved([&] {
      const auto before = std::tuple(best, best_step, tests_waited, watched, last_test);
      try {
        tests_made();
      } catch (...) {
        std::tie(best, best_step, tests_waited, watched, last_test) = before;
        throw;
      }
    });
  }
  /// Writes one, and gives the message that says so.
  std::string saved_after(const std::string& error);
  /// Is there memory for a copy of what a checkpoint holds?
  bool copy_fits(int64_t bytes) const;
  /// Opens the run's logs; with `resume_step` ≥ 0 they go on behind that step.
  void open_logs(int64_t resume_step = -1);
  void log_step(double loss, double lr, std::span<const NamedValue> metrics);
  /// `names`: of these values; made where they are not there.
  void log_values(const std::vector<Summary>& values, std::shared_ptr<const track::Names>& names, bool epoch);
  void log_epoch(const std::vector<Summary>& values);
  /// Runs what writes into the run folder; when the disk is full or gone, the message says what is safe.
  void record(const std::function<void()>& write) const;
  std::string best_key() const { return "best/" + recipe().train.keep_best; }
  void restore(const Checkpoint& from);
  /// What belongs to the weights: the optimiser's state, averages, the losses they gave.
  void restore_weights(const Checkpoint& from);
  /// Compiles the steps anew for a recipe that asks for others, which go on where the old ones were.
  void rebuild();
  /// What is the best so far, by the metric that the recipe names now; none when it named another before.
  void restore_best(const Checkpoint& from);
  /// Is a checkpoint due by the number of steps, or by the clock?
  bool step_planned() const;
  bool time_for_checkpoint() const;
  /// Says in the run folder by what it is begun or gone on with.
  void note_origin() const;
  /// Opens the journals of the run folder.
  void open_journals();
  /// Changes of `millrace ctl`, noted or new.
  void take_changes();
  void change(int64_t at, std::span<const Change> changes);
  /// Lists bad samples; when there are too many, saves and throws.
  void check_bad();
  /// InputError where a test leaves out too many samples for its metrics to be told.
  void check_bad_tests();
  void list_bad(const data::Feed& from, const char* set, int64_t& listed);
};

}  // namespace millrace::train
