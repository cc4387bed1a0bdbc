// Trainings of models that are fitted to all samples at once: a round of the fitting is a step, and an epoch.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/format.h"
#include "base/seconds_since.h"
#include "task/evaluate.h"
#include "task/fitting.h"
#include "task/model.h"
#include "task/predictor.h"
#include "task/rows.h"
#include "train/load_model.h"
#include "train/long_work.h"
#include "train/trainer_state.h"

namespace millrace::train {

void TrainerState::build_fitted(const Checkpoint* from) {
  const auto begin = Clock::now();
  if (from) restore_model(task, *from);
  fit_rows = task::fit_data(task, training, tests, [this](int64_t done_batches, int64_t of) {
    observer.busy("encoding " + feed().path(), done_batches, of);
  });
  {
    const LongWork work(observer.message, "preparing the samples");
    fitting = task::fitted_model(task)->fit(fit_rows);
  }
  fit_loss = std::make_unique<task::FitLoss>(task, fit_rows.training);
  total = fitting->rounds();
  steps_per_epoch = 1;
  prepared.fit = seconds_since(begin);
}

void TrainerState::store_rounds(int64_t rounds) {
  fitting->store(rounds);
  predictor.reset();  // compiled for arrays of other sizes
}

std::vector<eval::Measured> TrainerState::test_round(bool last) {
  const auto begin = Clock::now();
  if (const auto logits = fitting->logits(true)) {
    last_test = task::measure_logits(task, fit_rows.tests, *logits, last);
  } else {
    store_rounds(done());
    predictor = std::make_unique<task::Predictor>(task);
    last_test = task::evaluate(*predictor, task, tests, [&](int64_t at, int64_t of) {
                  observer.busy("evaluating", at, of);
                }).metrics;
    check_bad_tests();
  }
  test_seconds = seconds_since(begin);
  tell_undefined();
  return last_test;
}

void TrainerState::show_fitted_samples() {
  store_rounds(done());
  predictor = std::make_unique<task::Predictor>(task);
  task::ShownRows shown(task, tests, recipe().train.samples);
  task::to_start(*tests.feed);
  for (int64_t i = 0; i < tests.feed->batches_per_epoch(); ++i) {
    const data::FeedBatch& batch = tests.feed->next();
    shown.add(batch, shown.wants(batch) ? predictor->logits(*tests.feed, batch) : std::vector<Array>());
  }
  shown_rows = shown.take();
  show_samples();
}

void TrainerState::one_round() {
  // Each round is tested where something goes by it; else some of all, for the curves.
  constexpr int64_t tests_told = 20, lines = 10;
  const auto begin = Clock::now();
  if (!std::exchange(epoch_due, true)) {
    const LongWork work(observer.message, "fitting");
    fitting->round();
    ++rounds_done;
  }
  const auto every = [&](int64_t parts) { return done() % std::max<int64_t>(1, total / parts) == 0; };
  std::vector<Summary> values = {{"epoch", "", static_cast<double>(done())}};
  Status status;
  std::string text;
  if (const auto logits = fitting->logits(false)) {
    const auto [loss, metric] = (*fit_loss)(*logits);
    if (!std::isfinite(loss))
      fail<Error>("the loss of round {} is {}: a smaller model.learning_rate may help", done(),
                  std::isnan(loss) ? "NaN" : "infinite");
    values.push_back({"train/loss", "train/loss", loss});
    values.push_back({"train/" + metric.first, "train/" + metric.first, metric.second});
    status.loss = loss;
    status.metrics = {metric};
    text = fmt::format(": train {}", progress_text(loss, status.metrics));
  }
  const bool last = done() == total;
  if (tests.feed && (last || !recipe().train.keep_best.empty() || every(tests_told))) {
    test_or_saved([&] {
      compare_with_best(test_round(last));
      // Only now is it known that this was the last test.
      if (!last && ends_early()) test_round(true);
      if (log && (last || ends_early())) show_fitted_samples();
    });
    for (const eval::Measured& each : last_test)
      values.push_back({"test/" + each.name, "test/" + each.name, each.value});
    text += fmt::format("{} test {}", text.empty() ? ":" : ";", task::metrics_text(last_test));
    if (best_step == done() && last) text += " (the best so far)";
  }
  const double seconds = seconds_since(begin);
  samples_seen += fit_rows.training.samples();
  for (Summary& each : progress_values(epoch_since)) values.push_back(std::move(each));
  values.push_back({"seconds", "", seconds});
  if (log) log_epoch(values);
  epoch_due = false;
  tell_pace(status, seconds, fit_rows.training.samples(), 1);
  if (!status.metrics.empty()) observer.step(status);
  if (every(lines) || last || ends_early())
    observer.message(total == 1 ? fmt::format("fitted to {} {}{}; {:.1f} s", fit_rows.training.samples(),
                                              status.unit, text, seconds)
                                : fmt::format("round {} of {}{}", done(), total, text));
}

void TrainerState::save_best_round() {
  if (best_step <= 0 || best_step == best_saved) return;
  best_saved = best_step;
  if (best_step == done()) return;  // keep_as_best() had it
  store_rounds(best_step);
  Checkpoint best_of_all = checkpoint();
  best_of_all.step = best_step;
  record([&] { keep_as_best(run->checkpoints(), best_of_all); });
  store_rounds(done());
}

}  // namespace millrace::train
