// What a training writes and takes from its run folder: checkpoints, journals, lists of bad samples.
#include <cmath>

#include "base/format.h"
#include "base/memory_nodes.h"
#include "base/seconds_since.h"
#include "base/size_text.h"
#include "task/model.h"
#include "task/open.h"
#include "track/recorder.h"
#include "train/checkpoint.h"
#include "train/checkpoint_writer.h"
#include "train/control.h"
#include "train/load_model.h"
#include "train/origin.h"
#include "train/passes.h"
#include "train/trainer_state.h"

namespace millrace::train {
namespace {

/// Of the last sound steps, as LossWatch has them.
constexpr const char* kLosses = "bad.losses";

}  // namespace

Checkpoint TrainerState::checkpoint() const {
  Checkpoint c;
  c.step = done();
  store_model(task, c);
  const data::Cursor cursor = feed().cursor();
  c.counters["data.epoch"] = cursor.epoch;
  c.counters["data.position"] = cursor.position;
  if (!feed().streamed()) c.counters["data.samples"] = feed().count();
  c.counters["data.content"] = feed().digest();
  if (!cursor.state.empty()) {
    Array state(i64, {static_cast<int64_t>(cursor.state.size())});
    std::copy(cursor.state.begin(), cursor.state.end(), state.as<int64_t>().begin());
    c.tensors.emplace_back("data.cursor", std::move(state));
  }
  for (const eval::Measured& each : last_test) {
    c.sums["test/" + each.name] = each.value;
    c.sums["test/" + each.name + "/low"] = each.low;
    c.sums["test/" + each.name + "/high"] = each.high;
  }
  if (best_step >= 0) {
    c.sums[best_key()] = best;
    c.counters[best_key()] = best_step;
  }
  c.counters["tests_waited"] = tests_waited;
  c.sums["schedule/factor"] = watched.factor;
  if (std::isfinite(watched.best)) c.sums["schedule/best"] = watched.best;
  c.counters["schedule/waited"] = watched.waited;
  c.counters["schedule/resting"] = watched.resting;
  if (mean && mean->count > 0) {
    c.counters["average.count"] = mean->count;
    for (const auto& [name, array] : const_cast<WeightMean&>(*mean).get())
      c.tensors.emplace_back(kWeightMean + name, array);
  }
  c.sums["loss"] = loss_sum;
  c.counters["progress/samples"] = samples_seen;
  c.counters["progress/tokens"] = tokens_seen;
  c.counters["epoch_due"] = epoch_due;
  c.counters["mean_due"] = mean_due;
  if (fitting) return c;
  c.counters["left_out"] = step->left_out();
  c.counters["bad/in_row"] = bad_in_row;
  c.counters["bad/in_epoch"] = bad_in_epoch;
  c.counters["bad/skipped"] = bad_steps;
  c.counters["bad/rollbacks"] = rollbacks;
  c.counters["bad/rollback_step"] = rollback_step;
  c.sums["bad/rate"] = rollback_factor;
  if (!losses.losses().empty()) {
    Array kept(f64, {std::ssize(losses.losses())});
    std::copy(losses.losses().begin(), losses.losses().end(), kept.as<double>().begin());
    c.tensors.emplace_back(kLosses, std::move(kept));
  }
  for (const auto& [name, value] : sums) c.sums["train/" + name] = value;
  for (const auto& [name, array] : step->state()) c.tensors.emplace_back("optimizer." + name, array);
  if (passes) passes->store(c);
  if (lookahead)
    for (const auto& [name, array] : lookahead->slow()) c.tensors.emplace_back("lookahead." + name, array);
  return c;
}

void TrainerState::save(bool aside, bool planned) {
  const auto begin = Clock::now();
  if (fitting) store_rounds(done());
  if (planned) rollback_step = done();
  const auto write = [this, keep = recipe().train.keep_checkpoints,
                      keep_too = recipe().train.on_bad_step == "rollback" ? rollback_step : -1,
                      best = best_step == done()](const Checkpoint& now) {
    // A run that goes on from here has what was logged up to here.
    record([&] { log->flush(); });
    save_checkpoint(run->checkpoints(), now, keep, keep_too);
    if (best) record([&] { keep_as_best(run->checkpoints(), now); });
  };
  Checkpoint now = checkpoint();
  if (aside && !fitting && (writer || copy_fits(bytes_of_tensors(now)))) {
    if (!writer) writer = std::make_unique<CheckpointWriter>();
    writer->start(std::move(now), write);
  } else {
    if (writer) writer->wait();
    write(now);
  }
  if (fitting) save_best_round();
  last_checkpoint = Clock::now();
  saving_seconds += seconds_since(begin);
}

std::string TrainerState::saved_after(const std::string& error) {
  if (!run) return error;
  try {
    save();
  } catch (const Error& not_saved) {
    return fmt::format("{}\n{}", error, not_saved.what());
  }
  return fmt::format("{}\nEverything up to step {} is saved: when the data is there again, --resume goes on.",
                     error, done());
}

bool TrainerState::copy_fits(int64_t bytes) const {
  const std::string& most = recipe().train.memory;
  const Program& program = step->program();
  if (!most.empty() && static_cast<double>(program.arena_bytes() + program.bound_bytes() + bytes) >
                           parse_bytes("train.memory", most))
    return false;
  return memory_warning(bytes).empty();
}

void TrainerState::record(const std::function<void()>& write) const {
  try {
    write();
  } catch (const IoError& error) {
    const auto kept = list_checkpoints(run->checkpoints());
    if (kept.empty()) throw;
    const std::string why = error.what();
    fail<IoError>("{}{} {} is intact: --resume goes on from there.", why, why.ends_with('.') ? "" : ".",
                  kept.back().string());
  }
}

void TrainerState::restore(const Checkpoint& from) {
  const auto count = from.counters.find("data.samples");
  if (const int64_t now = feed().count(); count != from.counters.end() && count->second != now)
    fail<InputError>("{}: has {} {}, the run was begun with {}: bring the data back, or begin a new run",
                     feed().path(), now, feed().unit(), count->second);
  // Of what is not in memory it is not known (0): reading all of it would take as long as an epoch.
  if (const auto content = from.counters.find("data.content"); content != from.counters.end() &&
                                                               content->second != 0 && feed().digest() != 0 &&
                                                               content->second != feed().digest())
    fail<InputError>(
        "{}: its content is not what the run was begun with: bring the data back, or begin a new run",
        feed().path());
  const auto sum = [&](const std::string& name) {
    const auto found = from.sums.find(name);
    if (found == from.sums.end()) fail<InputError>("the checkpoint has no '{}'", name);
    return found->second;
  };
  for (const std::string& name : task.metrics())
    if (from.sums.contains("test/" + name))
      last_test.push_back(
          {name, sum("test/" + name), sum("test/" + name + "/low"), sum("test/" + name + "/high")});
  samples_seen = from.counter("progress/samples");
  tokens_seen = from.counter("progress/tokens");
  epoch_due = from.counter("epoch_due") != 0;
  mean_due = from.counter("mean_due") != 0;
  if (fitting) {
    rounds_done = from.step;
    fitting->resume(rounds_done);
    return;
  }
  restore_weights(from);
  bad_in_row = from.counter("bad/in_row");
  bad_in_epoch = from.counter("bad/in_epoch");
  bad_steps = from.counter("bad/skipped");
  rollbacks = from.counter("bad/rollbacks");
  rollback_step = from.counter("bad/rollback_step");
  if (from.sums.contains("bad/rate")) rollback_factor = sum("bad/rate");
  if (from.sums.contains("schedule/factor")) watched.factor = sum("schedule/factor");
  if (from.sums.contains("schedule/best")) watched.best = sum("schedule/best");
  watched.waited = from.counter("schedule/waited");
  watched.resting = from.counter("schedule/resting");
  data::Cursor cursor = feed().cursor();
  cursor.epoch = from.counters.at("data.epoch");
  cursor.position = from.counters.at("data.position");
  cursor.state.clear();
  if (const Array* const state = from.tensor("data.cursor"); state && state->dtype() == i64)
    cursor.state.assign(state->as<int64_t>().begin(), state->as<int64_t>().end());
  feed().seek(cursor);
  loss_sum = sum("loss");
  for (auto& [name, value] : sums) value = sum("train/" + name);
}

void TrainerState::restore_weights(const Checkpoint& from) {
  // What another precision had, or has not, of the scale of its loss: it begins anew, and the steps that it
  // has left out stay so.
  const std::set<std::string> scale = {"loss_scale", "good_steps", "skipped_steps"};
  const bool scaled = from.tensor("optimizer.loss_scale") != nullptr, scales = step->scales_loss();
  int64_t left_out = from.counter("left_out");
  if (converts && scaled && !scales) left_out += from.tensor("optimizer.skipped_steps")->int_at(0);
  step->set_step(from.step, left_out);
  for (auto& [name, array] : step->state()) {
    Array target = array;
    if (converts && !scaled && scale.contains(name)) continue;
    restore_array(from, "optimizer." + name, target, converts);
  }
  if (passes) passes->restore(from);
  if (lookahead)
    for (auto& [name, array] : lookahead->slow()) restore_array(from, "lookahead." + name, array);
  if (mean) mean->count = from.counter("average.count");
  if (mean && mean->count > 0)
    for (auto& [name, array] : mean->get()) restore_array(from, kWeightMean + name, array);
  const Array* const known = from.tensor(kLosses);
  losses.set(known ? known->to_doubles() : std::vector<double>());
}

void TrainerState::rebuild() {
  const Checkpoint now = checkpoint();
  task.network->store_parameters(recipe().train.precision == "bf16-pure" ? bf16 : f32);
  build_steps();
  converts = true;
  step_names.reset();  // a scale of the loss may have come, or gone
  restore_weights(now);
  if (predictor) build_predictor();
}

void TrainerState::restore_best(const Checkpoint& from) {
  const auto value = from.sums.find(best_key());
  const auto kept = from.counters.find(best_key());
  if (value == from.sums.end() || kept == from.counters.end()) return;
  best = value->second;
  best_step = kept->second;
  tests_waited = from.counter("tests_waited");
}

void TrainerState::note_origin() const {
  Origin origin = origin_now(done(), recipe().train.seed);
  if (training.samples) origin.data.push_back({"train", data::fingerprint(*training.samples)});
  if (tests.samples) origin.data.push_back({"test", data::fingerprint(*tests.samples)});
  write_origin(*run, origin);
}

void TrainerState::open_journals() {
  forget_bad_steps(run->bad_steps(), done());
  control = std::make_unique<Control>(*run);
  bad_list.emplace(run->bad_samples());
}

void TrainerState::change(int64_t at, std::span<const Change> changes) {
  task::Recipe changed = recipe();
  apply_changes(changed, changes);
  task::check_recipe(changed, "the recipe with these changes");
  const int64_t steps = fitting ? total : steps_of(changed, steps_per_epoch);
  if (steps != total && steps <= at)
    fail<InputError>("step {} is done already, so that {} steps cannot be all: at least {}", at, steps,
                     at + 1);
  const bool another_step = changed.train.precision != recipe().train.precision ||
                            guards(changed) != guards(recipe()) ||
                            (changed.train.log_every > 0) != (recipe().train.log_every > 0);
  const bool shares = changed.data.weights != recipe().data.weights;
  task.recipe = std::move(changed);
  if (another_step && !replaying && !fitting) rebuild();
  if (shares) feed().set_shares(task::shares_of(recipe(), {}));
  if (steps != total) {
    total = steps;
    make_schedule();
  }
  for (const Change& c : changes) observer.message(fmt::format("from step {} on {}", at + 1, c.spoken()));
}

void TrainerState::take_changes() {
  const auto apply = [this](int64_t at, std::span<const Change> changes) { change(at, changes); };
  control->replay(done(), apply);
  record([&] { control->take(done(), apply); });
}

void TrainerState::list_bad(const data::Feed& from, const char* set, int64_t& listed) {
  const int64_t known = from.tried().known_bad;
  if (known > listed) record([&] { bad_list->add(set, from.bad_samples()); });
  listed = known;
}

void TrainerState::check_bad() {
  const auto check = [&](const data::Feed& from, const char* set, int64_t& listed) {
    list_bad(from, set, listed);
    if (!too_many_bad(from.tried(), recipe().data.most_bad)) return;
    save();
    require_few_bad(from, recipe().data.most_bad,
                    fmt::format("All are listed in {}. Everything is saved: mend the data, or raise "
                                "data.most_bad in {}, then --resume goes on from step {}.",
                                run->bad_samples().string(), run->recipe().string(), done()));
  };
  check(feed(), "train", bad_listed);
  if (tests.feed) check(*tests.feed, "test", bad_tests_listed);
}

void TrainerState::check_bad_tests() {
  list_bad(*tests.feed, "test", bad_tests_listed);
  require_few_bad(*tests.feed, recipe().data.most_bad,
                  fmt::format("All are listed in {}. Mend the data, or raise data.most_bad in {}.",
                              run->bad_samples().string(), run->recipe().string()));
}

bool TrainerState::step_planned() const {
  return recipe().train.checkpoint_steps > 0 && done() % recipe().train.checkpoint_steps == 0;
}

bool TrainerState::time_for_checkpoint() const {
  return recipe().train.checkpoint_minutes > 0 &&
         seconds_since(last_checkpoint) >= 60 * recipe().train.checkpoint_minutes;
}

}  // namespace millrace::train
