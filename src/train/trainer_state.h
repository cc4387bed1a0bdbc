// What a training is made of while it runs: shared by trainer.cpp (the loop) and trainer_build.cpp (what comes before).
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>

#include "track/metrics_log.h"
#include "track/tensorboard.h"
#include "train/control.h"
#include "train/datasets.h"
#include "train/evaluate.h"
#include "train/freeze.h"
#include "train/optimizer.h"
#include "train/quarantine.h"
#include "train/stored_size.h"
#include "train/texts.h"
#include "train/trainer.h"

namespace millrace::train {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Trainer::State {
  Recipe recipe;
  Observer observer;
  std::unique_ptr<data::Feed> feed, test;  // `test` may be null
  data::Loader* pictures = nullptr;        // of `feed`; null where the data are others
  std::set<int64_t> bad, bad_tests;        // samples already named as unreadable
  std::string encoding;                    // of `feed`, for arrays
  std::optional<RunFolder> run;

  std::optional<Session> session;
  /// One for each of the feed's lengths (key 0 where it has none); they share the optimiser's state.
  std::map<int64_t, std::unique_ptr<optim::TrainStep>> by_length;
  optim::TrainStep* step = nullptr;  // the one that ran last, or runs
  std::unique_ptr<Predictor> predictor;
  std::optional<optim::Lookahead> lookahead;
  optim::Schedule schedule;
  std::vector<Freeze> freezes;
  std::unique_ptr<track::MetricsLog> log;
  std::unique_ptr<track::EventWriter> events;
  std::optional<Control> control;
  std::optional<BadList> bad_list;
  int64_t bad_listed = 0, bad_tests_listed = 0;  // counts when last looked at

  int64_t most_pictures = 0;  // > 0: a sample
  Preparation prepared;
  mutable std::optional<StoredSize> stored;  // once it was asked for
  int64_t steps_per_epoch = 0, total = 0;
  double loss_sum = 0, accuracy_sum = 0;  // of this epoch's steps
  std::vector<std::pair<std::string, double>> last_test;
  Clock::time_point last_checkpoint, epoch_begin;
  double step_seconds = 0, test_seconds = 0;  // lately
  bool first_step = true;                     // since the loader was put to its place
  int64_t timed = 0;                          // pictures
  double timed_seconds = 0, timed_waiting = 0;
  DataTimes epoch_times, first_times;  // when the epoch, or the first of several, began
  int64_t times_told = 0;              // verdicts

  int64_t done() const { return step->step(); }
  ReadProgress reading() {
    return [this](const std::string& what, int64_t done_, int64_t total_) {
      observer.busy("reading " + what, done_, total_);
    };
  }

  /// Of an epoch's steps: those of the whole training.
  static int64_t steps_of(const Recipe& recipe, int64_t in_epoch);
  void open_data();
  void open_training();
  void open_pictures();
  void take_pictures(std::unique_ptr<data::PictureFeed> opened);
  void open_tests();
  void build(const Checkpoint* from);
  void build_steps();
  /// Makes the step of that length the one that runs.
  void choose_step(int64_t length);
  void freeze();
  void fit();
  Checkpoint checkpoint() const;
  void save();
  /// Runs what writes into the run folder; when the disk is full or gone, the message says what is safe.
  void record(const std::function<void()>& write) const;
  void restore(const Checkpoint& from);
  /// False, and nothing done, when the observer stops it while it waits for data.
  bool one_step(StepMarks* marks = nullptr);
  /// The next batch; null when the observer stops it before. What goes wrong is thrown after a checkpoint.
  const data::FeedBatch* take_batch();
  void check_finite(double loss) const;
  void end_epoch();
  void report(double seconds);
  bool checkpoint_due() const;
  /// Opens the journals of the run folder.
  void open_journals();
  /// Changes of `millrace ctl`, noted or new.
  void take_changes();
  void change(int64_t at, std::span<const Change> changes);
  /// Lists bad samples; when there are too many, saves and throws.
  void check_bad();
  DataTimes data_times() const;
  std::string verdict(const DataTimes& times) const;
  void tell_verdict(const DataTimes& times, const std::string& of);
};

}  // namespace millrace::train
