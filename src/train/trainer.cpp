#include "train/trainer.h"

#include <algorithm>
#include <utility>

#include <millrace/optim.h>

#include "base/file.h"
#include "base/format.h"
#include "base/seconds_since.h"
#include "task/evaluate.h"
#include "task/fitting.h"
#include "task/model.h"
#include "task/predictor.h"
#include "task/rows.h"
#include "track/recorder.h"
#include "train/checkpoint.h"
#include "train/checkpoint_writer.h"
#include "train/control.h"
#include "train/passes.h"
#include "train/trainer_state.h"

namespace millrace::train {

TrainerState::TrainerState() = default;
TrainerState::~TrainerState() = default;

Trainer::Trainer(task::Recipe recipe, Observer observer, int64_t most_samples)
    : state_(std::make_unique<TrainerState>()) {
  state_->task.recipe = std::move(recipe);
  state_->most_samples = most_samples;
  state_->observer = std::move(observer);
}

Trainer::~Trainer() = default;

const RunFolder& Trainer::begin(const std::filesystem::path& out, const std::string& name) {
  TrainerState& s = *state_;
  s.open_data("");
  s.build(nullptr);
  s.run = RunFolder::create(out, name, s.recipe());
  s.open_logs();
  s.open_journals();
  s.record([&] { s.note_origin(); });
  s.save(false, true);
  return *s.run;
}

const RunFolder& Trainer::resume(const RunFolder& run, std::span<const std::string> overrides) {
  TrainerState& s = *state_;
  s.run = run;
  s.run->lock();
  const auto loaded = load_newest_checkpoint(run.checkpoints());
  if (loaded)
    for (const std::string& warning : loaded->warnings) s.observer.message(warning);
  const int64_t step = loaded ? loaded->checkpoint.step : 0;
  task::Recipe now = s.recipe();
  std::vector<Change> noted;
  for (const Applied& entry : read_journal(run.journal()))
    if (entry.step <= step) noted.push_back(entry.change);
  apply_changes(now, noted);
  const std::vector<Change> told = resume_changes(run, now, overrides);
  apply_changes(now, told);
  task::check_recipe(now, "the recipe with these changes");
  const auto of_precision = [](const Change& change) { return change.key == "train.precision"; };
  const bool another = std::any_of(told.begin(), told.end(), of_precision);
  s.converts = another || std::any_of(noted.begin(), noted.end(), of_precision);
  // How data are read and measured counts from the beginning on; the rest is replayed where it was made.
  s.task.recipe.data.cache_mb = now.data.cache_mb;
  s.task.recipe.data.memory = now.data.memory;
  s.task.recipe.eval = now.eval;
  s.task.recipe.train.keep_best = now.train.keep_best;
  // So does what the step is compiled by: it is built once, as it will be.
  s.task.recipe.train.precision = now.train.precision;
  s.task.recipe.train.on_bad_step = now.train.on_bad_step;
  s.task.recipe.train.loss_spike = now.train.loss_spike;
  s.task.recipe.train.log_every = now.train.log_every;
  s.task.recipe.train.log = now.train.log;
  s.open_data(loaded ? loaded->checkpoint.encoding : "");
  s.build(loaded ? &loaded->checkpoint : nullptr);
  if (loaded) s.restore(loaded->checkpoint);
  s.record([&] { s.open_logs(s.done()); });
  s.record([&] { s.open_journals(); });
  s.replaying = true;
  s.control->replay(s.done(), [&](int64_t at, std::span<const Change> changes) { s.change(at, changes); });
  if (!told.empty()) {
    s.change(s.done(), told);
    s.record([&] { s.control->note(s.done(), told); });
  }
  s.replaying = false;
  // Only now is it known by which metric: the journal and what was told may name another than the recipe.
  if (loaded) s.restore_best(loaded->checkpoint);
  if (loaded) s.observer.message(fmt::format("going on from step {} of {}", s.done(), s.total));
  // What the new step chose by timing stands in the checkpoint that it would be resumed from.
  if (!loaded || another) s.save(false, !loaded);
  s.record([&] { s.note_origin(); });
  return *s.run;
}

Program& Trainer::program() {
  task::require_steps(state_->recipe(), "what looks at a step of training");
  if (!state_->training.feed) state_->open_data("");
  if (!state_->step) state_->build(nullptr);
  return state_->step->program();
}

std::vector<int64_t> Trainer::lengths() {
  program();
  std::vector<int64_t> lengths;
  for (const auto& [length, step] : state_->by_length)
    if (length > 0) lengths.push_back(length);
  return lengths;
}

const task::Recipe& Trainer::recipe() {
  if (!state_->training.feed) state_->open_data("");
  if (!state_->fitting) program();
  return state_->recipe();
}

const task::Task& Trainer::task() const { return state_->task; }
const task::TaskFeed& Trainer::training() const { return state_->training; }
const task::TaskFeed& Trainer::tests() const { return state_->tests; }
const Preparation& Trainer::preparation() const { return state_->prepared; }
DataTimes Trainer::data_times() const { return state_->data_times(); }
std::string Trainer::verdict(const DataTimes& times) const { return state_->verdict(times); }

double Trainer::rehearse_test() {
  TrainerState& s = *state_;
  program();
  return s.tests.feed ? task::evaluate(*s.predictor, s.task, s.tests).seconds : 0;
}

int Trainer::views() const { return task::views_of(state_->task); }

void Trainer::rehearse(const std::function<bool(const StepMarks&)>& more) {
  program();
  state_->rehearsing = true;
  StepMarks marks;
  do {
    if (!state_->one_step(&marks)) return;
  } while (more(marks));
}

Outcome Trainer::run() {
  TrainerState& s = *state_;
  s.last_checkpoint = s.epoch_begin = Clock::now();
  s.begun = s.last_checkpoint;
  s.epoch_times = s.first_times = s.data_times();
  s.epoch_since = s.details_since = s.progress();
  s.check_bad();
  const auto after_step = [&](bool epoch_ends) {
    if (epoch_ends) s.end_epoch();
    // Before saving: what the new step chose by timing stands in the checkpoint that it would be resumed
    // from.
    s.freeze();
    const bool rolled_back = std::exchange(s.rolled_back, false);
    const bool planned = epoch_ends || rolled_back || s.step_planned();
    // The last one is waited for: no copy is made of it.
    if (planned || s.time_for_checkpoint()) s.save(s.done() < s.total, planned);
    s.check_bad();
  };
  const auto round = [&] {
    s.one_round();
    if (s.done() == s.total || s.ends_early() || s.step_planned() || s.time_for_checkpoint()) s.save();
  };
  if (s.epoch_due) s.fitting ? round() : after_step(true);
  while (s.done() < s.total && !s.ends_early()) {
    s.take_changes();
    if (s.writer) s.writer->check();
    if (s.observer.stop()) {
      s.save();
      s.record([&] { s.log->finish("stopped"); });
      return {false, s.done(), s.tests.feed != nullptr, s.last_test};
    }
    if (s.fitting) {
      round();
      continue;
    }
    const auto begin = Clock::now();
    if (!s.one_step()) continue;  // to be stopped above
    s.report(seconds_since(begin));
    after_step(s.done() % s.steps_per_epoch == 0 || s.done() == s.total);
  }
  if (s.passes)
    s.observer.message(fmt::format("lbfgs {}", s.passes->text(s.done() / s.steps_per_epoch)));
  else if (s.done() < s.total)
    s.observer.message(
        fmt::format("the training ends with step {} of {}: {} has not become better for {} tests; it was "
                    "best at step {}, whose weights are the checkpoint best",
                    s.done(), s.total, s.recipe().train.keep_best, s.tests_waited, s.best_step));
  if (s.writer) s.writer->wait();
  if (s.bad_steps + s.rollbacks > 0)
    s.observer.message(fmt::format("of {} steps, {} were bad and left out; {} rollbacks: {}", s.done(),
                                   s.bad_steps, s.rollbacks, s.run->bad_steps().string()));
  s.record([&] { s.log->finish("finished"); });
  std::vector<std::string> notes;
  const Exchanged averaged(*s.task.network, s.averages());
  try {
    s.record([&] { write_file(s.run->model(), task::export_model(s.task, notes)); });
  } catch (const InputError& error) {  // of an imported model; the run has all that is trained
    notes.push_back(fmt::format("there is no {}: {}", s.run->model().filename().string(), error.what()));
  }
  for (const std::string& line : notes) s.observer.message(line);
  return {true, s.done(), s.tests.feed != nullptr, s.last_test};
}

}  // namespace millrace::train
