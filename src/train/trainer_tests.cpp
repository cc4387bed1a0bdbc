// The test after an epoch, and what follows from it: the best so far, the rate, the end.
#include <algorithm>
#include <cmath>

#include "base/contains.h"
#include "base/format.h"
#include "task/evaluate.h"
#include "task/model.h"
#include "task/predictor.h"
#include "task/rows.h"
#include "train/passes.h"
#include "train/trainer_state.h"

namespace millrace::train {

Averaged TrainerState::averages() {
  if (fitting) return {};
  if (mean) return mean->count > 0 ? mean->get() : Averaged();
  Averaged found;
  constexpr std::string_view prefix = "ema.";
  if (recipe().train.ema > 0)
    for (const auto& [name, array] : step->state())
      if (name.starts_with(prefix)) found.emplace(name.substr(prefix.size()), array);
  return found;
}

/// Once the steps are there, which know what they change.
void TrainerState::build_mean() {
  if (!(recipe().train.swa > 0)) return;
  mean.emplace(*task.network);
  std::set<std::string> moving;
  const auto& changed = step->graph().output_names();
  for (const nn::Named& buffer : task.network->buffers())
    if (buffer.tensor->dtype() == f32 && contains(changed, "new " + buffer.name)) moving.insert(buffer.name);
  if (moving.empty()) return;
  if (feed().streamed())
    fail<InputError>(
        "train.swa measures the running statistics of batch norms ({}) anew, on training data that a stream "
        "gives once: use train.ema, or data with random access",
        *moving.begin());
  const auto all = feed().fields();
  statistics.emplace(task, std::vector<data::Field>(all.begin(), all.end()), std::move(moving),
                     static_cast<uint64_t>(recipe().train.seed));
  std::vector<int64_t> lengths = feed().lengths();
  if (lengths.empty()) lengths = {0};
  for (const int64_t length : lengths) statistics->prepare(length);
}

void TrainerState::add_to_mean() {
  if (!mean || static_cast<double>(done()) < recipe().train.swa * static_cast<double>(total)) return;
  mean->add();
  mean_due = statistics.has_value();
}

void TrainerState::measure_mean() {
  constexpr int64_t most_batches = 100;
  if (!mean_due) return;
  const Exchanged averaged(*task.network, mean->get());
  statistics->measure(feed(), std::min(most_batches, steps_per_epoch));
  mean_due = false;
}

std::vector<eval::Measured> TrainerState::run_test(bool last) {
  const Exchanged averaged(*task.network, averages());
  const auto test = [&](bool views, const task::OnBatch& on_batch) {
    predictor->use_views(views);
    return task::evaluate(
        *predictor, task, tests, task.metrics(),
        [&](int64_t at, int64_t of) { observer.busy("evaluating", at, of); }, nullptr, on_batch);
  };
  task::ShownRows shown(task, tests, log ? recipe().train.samples : 0);
  const auto show = [&](const data::FeedBatch& batch, std::span<const Array> logits) {
    shown.add(batch, logits);
  };
  // Test-time augmentation is for the result; on the way there it would cost as much as training.
  const task::Evaluation evaluation = test(last, show);
  check_bad_tests();
  test_seconds = evaluation.seconds;
  last_test = evaluation.metrics;
  shown_rows = shown.take();
  tell_undefined();
  // Compared is what was measured in the same way.
  const bool viewed = last && task::views_of(task) > 1;
  const bool wanted = !recipe().train.keep_best.empty() || recipe().train.schedule.settings.find("metric");
  return viewed && wanted ? test(false, nullptr).metrics : last_test;
}

void TrainerState::tell_undefined() {
  for (const eval::Measured& each : last_test)
    if (std::isnan(each.value) && undefined_told.insert(each.name).second)
      observer.message(fmt::format("test {} is {}", each.name, task::undefined_text(each.name)));
}

void TrainerState::compare_with_best(const std::vector<eval::Measured>& metrics) {
  const std::string& name = recipe().train.keep_best;
  if (name.empty()) return;
  ++tests_waited;
  const auto found =
      std::find_if(metrics.begin(), metrics.end(), [&](const auto& each) { return each.name == name; });
  if (found == metrics.end() || !std::isfinite(found->value)) return;
  const bool higher = task::metric_of(name).higher_is_better;
  if (best_step >= 0 && (higher ? found->value <= best : found->value >= best)) return;
  best = found->value;
  best_step = done();
  tests_waited = 0;
}

bool TrainerState::ends_early() const {
  if (passes && passes->over()) return true;
  return recipe().train.early_stopping > 0 && tests_waited >= recipe().train.early_stopping;
}

void TrainerState::measure_schedule(const std::vector<eval::Measured>& metrics, double loss) {
  const task::Section& schedule_by = recipe().train.schedule;
  const optim::ScheduleKind& kind = optim::schedule_kinds().at(schedule_by.kind);
  if (!kind.measured) return;
  std::string name = schedule_by.settings.text("metric");
  if (name.empty()) name = recipe().train.keep_best;
  double value = loss;
  bool higher = false;
  if (!name.empty()) {
    const auto found =
        std::find_if(metrics.begin(), metrics.end(), [&](const auto& each) { return each.name == name; });
    if (found == metrics.end() || !std::isfinite(found->value)) return;
    value = found->value;
    higher = task::metric_of(name).higher_is_better;
  }
  const double before = watched.factor;
  kind.measured(schedule_by.settings, value, higher, watched);
  if (watched.factor != before)
    observer.message(
        fmt::format("from step {} on the rate is {:.4g} of train.optimizer.lr: {} has not improved",
                    done() + 1, watched.factor, name.empty() ? "the training loss" : name));
}

}  // namespace millrace::train
