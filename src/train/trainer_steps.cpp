// Steps of a training, and what happens at the end of an epoch.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/format.h"
#include "base/memory_nodes.h"
#include "base/parallel_copy.h"
#include "base/seconds_since.h"
#include "base/thread_pool.h"
#include "runtime/profile.h"
#include "runtime/run_clock.h"
#include "task/evaluate.h"
#include "task/model.h"
#include "track/recorder.h"
#include "train/control.h"
#include "train/loss_proxy.h"
#include "train/passes.h"
#include "train/trainer_state.h"

namespace millrace::train {

void TrainerState::choose_step(int64_t length) {
  optim::TrainStep* const wanted = by_length.at(length).get();
  if (wanted == step) return;
  wanted->set_step(step->step(), step->left_out());
  step = wanted;
}

/// Where parameters stop training, a step without their gradients goes on with the others' optimiser state.
void TrainerState::freeze() {
  const int64_t at = done(), left_out = step->left_out();
  if (at == total || !freeze_due(*task.network, freezes, at)) return;
  std::map<std::string, Array> state;
  for (const auto& [name, array] : step->state()) state.emplace(name, array.clone());
  build_steps();
  step->set_step(at, left_out);
  for (auto& [name, array] : step->state()) {
    const Array& kept = state.at(name);
    std::memcpy(array.data(), kept.data(), static_cast<size_t>(kept.bytes()));
  }
}

void TrainerState::apply_lookahead() {
  if (!lookahead || (done() % recipe().train.lookahead != 0 && done() != total)) return;
  const double part = static_cast<double>(done()) / static_cast<double>(total);
  lookahead->update(done() == total ? 1.0
                                    : std::pow(recipe().train.lookahead_decay, recipe().train.lookahead) *
                                          std::pow(part, 3));
}

double TrainerState::batch_share() const {
  if (!passes) return 1;
  const int64_t before = (done() - 1) % steps_per_epoch * feed().batch_size();
  return std::min(1.0,
                  static_cast<double>(feed().count() - before) / static_cast<double>(feed().batch_size()));
}

double TrainerState::counted_steps() const {
  const auto before = static_cast<double>((done() - 1) % steps_per_epoch - bad_in_epoch);
  return std::max(0.0, before + batch_share());
}

int64_t TrainerState::done() const { return fitting ? rounds_done : step->step(); }

bool TrainerState::one_step(StepMarks* marks) {
  const auto mark = [&](int64_t StepMarks::*part) {
    if (marks) marks->*part = clock_now();
  };
  mark(&StepMarks::begin);
  const int64_t asked = clock_now();
  const data::FeedBatch* const taken = take_batch();
  if (!taken) return false;
  const data::FeedBatch& batch = *taken;
  const int64_t given = clock_now();
  mark(&StepMarks::data);
  choose_step(batch.length);
  if (passes && done() % steps_per_epoch == 0) passes->begin(*step);
  for (size_t i = 0; i < batch.arrays.size(); ++i)
    copy_to_nodes(ThreadPool::global(), step->input(static_cast<int>(i)).data(), batch.arrays[i].data(),
                  batch.arrays[i].size());
  if (passes)
    for (int i = static_cast<int>(batch.arrays.size()); i < step->input_count(); ++i)
      Passes::fill(step->input(i), batch);
  mark(&StepMarks::inputs);
  const double lr = recipe().train.lr_scale * schedule(done()) * watched.factor * rollback_factor;
  step->set_loss_limit(losses.limit(recipe().train.loss_spike));
  if (recipe().train.verify > 0 && (done() + 1) % recipe().train.verify == 0) {
    if (const std::string found = step->run_verified(lr); !found.empty())
      fail<Error>(
          "step {}: {}. This is a defect of Millrace, please report it; train.verify = 0 goes on without.",
          done(), found);
  } else {
    step->run(lr);
  }
  mark(&StepMarks::ran);
  const double loss = step->loss();
  const auto metrics = step->metrics();  // those of the outputs, then maybe the scale of the loss
  const int64_t bad_before = bad_in_epoch;
  judge_step(loss);
  apply_lookahead();
  if (bad_in_epoch == bad_before) {
    loss_sum += loss;
    for (size_t i = 0; i < sums.size(); ++i) sums[i].second += metrics[i].second;
  }
  mark(&StepMarks::end);
  if (!first_step) {
    timed += batch.valid;
    timed_seconds += static_cast<double>(clock_now() - asked) * 1e-9;
    timed_waiting += static_cast<double>(given - asked) * 1e-9;
  }
  first_step = false;
  samples_seen += batch.valid;
  tokens_seen += batch.valid * tokens_of.at(batch.length);
  if (!log) return true;
  log_step(loss, lr, metrics);
  log_details();
  mark(&StepMarks::end);
  return true;
}

void TrainerState::tell_pace(Status& status, double seconds, int64_t samples, int64_t epoch) {
  step_seconds = step_seconds == 0 ? seconds : 0.9 * step_seconds + 0.1 * seconds;
  status.step = done();
  status.steps = total;
  status.epoch = static_cast<double>(done()) / static_cast<double>(epoch);
  status.epochs = static_cast<double>(total) / static_cast<double>(epoch);
  status.unit = feed().unit();
  status.samples = done() * samples;
  status.per_second = static_cast<double>(samples) / std::max(step_seconds, 1e-9);
  status.seconds_left = static_cast<double>(total - done()) * step_seconds;
}

void TrainerState::report(double seconds) {
  const double in_epoch = counted_steps();
  Status status;
  tell_pace(status, seconds, recipe().train.batch, steps_per_epoch);
  status.loss = loss_sum / in_epoch;
  status.metrics = means(in_epoch);
  const double tests_left = tests.feed ? std::ceil(status.epochs) - std::floor(status.epoch) : 0;
  status.seconds_left += tests_left * test_seconds;
  observer.step(status);
}

void TrainerState::end_epoch() {
  const double steps = counted_steps();
  const double loss = passes && bad_in_epoch > 0 ? std::numeric_limits<double>::infinity() : loss_sum / steps;
  const double train_seconds = seconds_since(epoch_begin);
  const DataTimes times = data_times() - epoch_times;
  const double epoch = static_cast<double>(done()) / static_cast<double>(steps_per_epoch);
  std::vector<Summary> values = {{"epoch", "", epoch}, {"train/loss", "", loss}};
  for (const auto& [name, value] : means(steps)) values.push_back({"train/" + name, "", value});
  std::string text = fmt::format("epoch {:.4g}: train {}", epoch, progress_text(loss, means(steps)));
  if (passes) {
    if (!epoch_due) passes->end(*step, loss, steps);
    values.push_back({"gradient", "", passes->gradient()});
    text += fmt::format("  gradient {:.2g}", passes->gradient());
    if ((done() == total || passes->over()) && passes->take_best())
      text += " (the weights of the best pass are taken)";
  }
  if (!epoch_due) add_to_mean();
  epoch_due = true;
  or_saved([&] { measure_mean(); });
  if (tests.feed) {
    test_or_saved([&] {
      const std::vector<eval::Measured> compared = run_test(done() == total);
      compare_with_best(compared);
      measure_schedule(compared, loss);
      // Only now is it known that this was the last test.
      if (done() < total && ends_early()) run_test(true);
    });
    for (const eval::Measured& each : last_test)
      values.push_back({"test/" + each.name, "test/" + each.name, each.value});
    if (!last_test.empty()) text += fmt::format("; test {}", task::metrics_text(last_test));
    if (best_step == done()) text += " (the best so far)";
  } else {
    measure_schedule({}, loss);
  }
  const bool last = done() == total || ends_early();
  const std::string proxy = last && log ? compare_loss(loss, values) : "";
  for (Summary& each : progress_values(epoch_since)) values.push_back(std::move(each));
  values.push_back({"seconds", "", seconds_since(epoch_begin)});
  values.push_back({"seconds_waiting", "", times.waiting});
  values.push_back({"seconds_saving", "", std::exchange(saving_seconds, 0)});
  values.push_back({"seconds_loading_a_sample", "", times.cpu_per_sample()});
  if (log) log_epoch(values);
  show_samples();
  show_histograms();
  for (const std::string& line : skipped_samples(feed(), bad)) observer.message(line);
  if (tests.feed)
    for (const std::string& line : skipped_samples(*tests.feed, bad_tests)) observer.message(line);
  observer.message(text + fmt::format("; {:.1f} s", train_seconds + (tests.feed ? test_seconds : 0)));
  if (!passes) tell_verdict(times, "");  // a pass may take milliseconds
  if (!proxy.empty()) observer.message(proxy);
  if (done() == total && times_told > 1) tell_verdict(data_times() - first_times, "over all epochs, ");
  // Of a training that ends within an epoch more may be asked for, and then the epoch goes on.
  if (done() % steps_per_epoch == 0) {
    loss_sum = 0;
    bad_in_epoch = 0;
    for (NamedValue& sum : sums) sum.second = 0;
  }
  epoch_due = false;
  epoch_begin = Clock::now();
  epoch_times = data_times();
}

std::string TrainerState::compare_loss(double loss, std::vector<Summary>& values) const {
  if (last_test.empty()) return {};
  const std::string& chosen = recipe().train.keep_best;
  const std::string metric = chosen.empty() ? last_test.front().name : chosen;
  const auto now =
      std::find_if(last_test.begin(), last_test.end(), [&](const auto& each) { return each.name == metric; });
  if (now == last_test.end()) return {};
  record([&] { log->flush(); });
  LossProxy proxy = read_loss_proxy(run->metrics(), metric, task::metric_of(metric).higher_is_better);
  proxy.losses.push_back(loss);
  proxy.values.push_back(now->value);
  if (proxy.losses.size() < 2) return {};
  values.push_back({"loss_rank_correlation", "", proxy.correlation()});
  return loss_proxy_text(proxy, metric, !chosen.empty());
}

std::vector<NamedValue> TrainerState::means(double steps) const {
  std::vector<NamedValue> list = sums;
  for (NamedValue& each : list) each.second /= steps;
  return list;
}

DataTimes TrainerState::data_times() const {
  const data::LoaderWork work = feed().work();
  return {timed,       timed_seconds, timed_waiting, work.samples, work.cpu_seconds, work.queued_seconds,
          work.seconds};
}

std::string TrainerState::verdict(const DataTimes& times) const {
  DataMeans what{.cpus = available_cpus(), .unit = feed().unit(), .cached = feed().cached()};
  what.augments = std::any_of(task.inputs.begin(), task.inputs.end(),
                              [](const auto& input) { return input->augments(); });
  if (times.wait_share() > 0.05 && !what.cached) {
    const int64_t bytes = feed().cache_needed();
    if (bytes > 0 && memory_warning(bytes).empty()) what.cache_mb = (bytes >> 20) + 1;
    if (!cheaper) {
      cheaper = task::CheaperSamples();
      try {
        if (training.samples) cheaper = task.inputs[0]->cheaper(*training.samples);
      } catch (const Error&) {
        // An advice only: who reads the sample next says what is wrong with it.
      }
    }
    what.cheaper = cheaper->how;
    what.cheaper_cost = cheaper->cost;
  }
  return data_verdict(times, what);
}

void TrainerState::tell_verdict(const DataTimes& times, const std::string& of) {
  std::string line = verdict(times);
  if (line.empty()) return;
  ++times_told;
  observer.message(line.insert(line.find(' ') + 1, of));
}

const data::FeedBatch* TrainerState::take_batch() {
  // A source that gives nothing must not keep Ctrl-C from being heard.
  constexpr double look = 0.05, patience = 10;
  const auto begin = Clock::now();
  for (bool said = false; !feed().ready(look);) {
    if (observer.stop()) return nullptr;
    if (said || seconds_since(begin) < patience) continue;
    observer.message(fmt::format("step {} waits for data: {} gives nothing", done() + 1, feed().path()));
    said = true;
  }
  return or_saved([&] { return &feed().next(); });
}

}  // namespace millrace::train
