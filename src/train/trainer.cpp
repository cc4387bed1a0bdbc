#include "train/trainer.h"

#include <cmath>
#include <cstring>

#include "base/file.h"
#include "base/format.h"
#include "base/memory_nodes.h"
#include "base/parallel_copy.h"
#include "base/thread_pool.h"
#include "eval/metric.h"
#include "runtime/run_clock.h"
#include "train/trainer_state.h"

namespace millrace::train {
namespace {

/// "accuracy 97.31 %  log-loss 0.0912"
std::string metrics_text(const std::vector<std::pair<std::string, double>>& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics)
    text += fmt::format("{}{} {}", text.empty() ? "" : "  ", name,
                        eval::metric_kinds().at(name).share ? fmt::format("{:.2f} %", 100 * value)
                                                            : fmt::format("{:.4f}", value));
  return text;
}

}  // namespace

/// Where parameters stop training, a step without their gradients goes on with the others' optimiser state.
void Trainer::State::freeze() {
  const int64_t at = done();
  if (at == total || !freeze_due(*session->model.module, freezes, at)) return;
  std::map<std::string, Array> state;
  for (const auto& [name, array] : step->state()) state.emplace(name, array.clone());
  build_steps();
  step->set_step(at);
  for (auto& [name, array] : step->state()) {
    const Array& kept = state.at(name);
    std::memcpy(array.data(), kept.data(), static_cast<size_t>(kept.bytes()));
  }
}

Checkpoint Trainer::State::checkpoint() const {
  Checkpoint c;
  c.step = done();
  store_session(*session, c);
  const data::Cursor cursor = feed->cursor();
  c.counters["data.epoch"] = cursor.epoch;
  c.counters["data.position"] = cursor.position;
  if (!feed->streamed()) c.counters["data.pictures"] = feed->count();
  c.counters["data.digest"] = feed->digest();
  if (!cursor.state.empty()) {
    Array state(i64, {static_cast<int64_t>(cursor.state.size())});
    std::copy(cursor.state.begin(), cursor.state.end(), state.as<int64_t>().begin());
    c.tensors.emplace_back("data.cursor", std::move(state));
  }
  for (const auto& [name, value] : last_test) c.sums["test/" + name] = value;
  c.sums["loss"] = loss_sum;
  c.sums["accuracy"] = accuracy_sum;
  for (const auto& [name, array] : step->state()) c.tensors.emplace_back("optimizer." + name, array);
  if (lookahead)
    for (const auto& [name, array] : const_cast<optim::Lookahead&>(*lookahead).slow())
      c.tensors.emplace_back("lookahead." + name, array);
  return c;
}

void Trainer::State::save() {
  save_checkpoint(run->checkpoints(), checkpoint(), recipe.train.keep_checkpoints);
  last_checkpoint = Clock::now();
}

void Trainer::State::record(const std::function<void()>& write) const {
  try {
    write();
  } catch (const IoError& error) {
    const auto kept = list_checkpoints(run->checkpoints());
    if (kept.empty()) throw;
    fail<IoError>("{} {} is intact: --resume goes on from there.", error.what(), kept.back().string());
  }
}

void Trainer::State::restore(const Checkpoint& from) {
  const auto count = from.counters.find("data.pictures");
  if (const int64_t now = feed->count(); count != from.counters.end() && count->second != now)
    fail<InputError>("{}: has {} {}, the run was begun with {}: bring the data back, or begin a new run",
                     feed->path(), now, feed->unit(), count->second);
  if (const auto digest = from.counters.find("data.digest");
      digest != from.counters.end() && digest->second != feed->digest())
    fail<InputError>(
        "{}: its content is not what the run was begun with: bring the data back, or begin a new run",
        feed->path());
  for (const std::string& name : recipe.eval.metrics)
    if (const auto value = from.sums.find("test/" + name); value != from.sums.end())
      last_test.emplace_back(name, value->second);
  step->set_step(from.step);
  for (auto& [name, array] : step->state()) {
    Array target = array;
    restore_array(from, "optimizer." + name, target);
  }
  if (lookahead)
    for (auto& [name, array] : lookahead->slow()) restore_array(from, "lookahead." + name, array);
  data::Cursor cursor = feed->cursor();
  cursor.epoch = from.counters.at("data.epoch");
  cursor.position = from.counters.at("data.position");
  cursor.state.clear();
  for (const auto& [name, array] : from.tensors)
    if (name == "data.cursor" && array.dtype() == i64)
      cursor.state.assign(array.as<int64_t>().begin(), array.as<int64_t>().end());
  feed->seek(cursor);
  loss_sum = from.sums.at("loss");
  accuracy_sum = from.sums.at("accuracy");
}

void Trainer::State::check_finite(double loss) const {
  if (step->sound()) return;
  std::string first = step->find_non_finite();
  if (first.empty()) first = "no operation repeats it";
  if (first.starts_with("parameter"))
    first +=
        " (the gradient of the step before overflowed: with train.clip_norm the operation that did it is "
        "named)";
  const auto kept = run ? list_checkpoints(run->checkpoints()) : std::vector<std::filesystem::path>{};
  fail<Error>(
      "{}: {}. A smaller train.optimizer.lr (now {}), train.clip_norm or train.schedule.warmup may help; {} "
      "holds the "
      "last sound weights.",
      std::isfinite(loss) ? fmt::format("the gradients of step {} are not finite", done())
                          : fmt::format("the loss of step {} is {}", done(),
                                        std::isnan(loss) ? "NaN"
                                        : loss > 0       ? "infinite"
                                                         : "minus infinite"),
      first, recipe.train.optimizer.lr, kept.empty() ? "no checkpoint" : kept.back().string());
}

bool Trainer::State::one_step(StepMarks* marks) {
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
  for (size_t i = 0; i < batch.arrays.size(); ++i)
    copy_to_nodes(ThreadPool::global(), step->input(static_cast<int>(i)).data(), batch.arrays[i].data(),
                  batch.arrays[i].size());
  mark(&StepMarks::inputs);
  const double lr = recipe.train.lr_scale * schedule(done());
  if (recipe.train.verify > 0 && (done() + 1) % recipe.train.verify == 0) {
    if (const std::string found = step->run_verified(lr); !found.empty())
      fail<Error>(
          "step {}: {}. This is a defect of Millrace, please report it; train.verify = 0 goes on without.",
          done(), found);
  } else {
    step->run(lr);
  }
  mark(&StepMarks::ran);
  const double loss = step->loss();
  const auto metrics = step->metrics();
  const double accuracy = metrics[0].second;
  check_finite(loss);
  if (lookahead && (done() % recipe.train.lookahead == 0 || done() == total)) {
    const double part = static_cast<double>(done()) / static_cast<double>(total);
    lookahead->update(done() == total ? 1.0
                                      : std::pow(recipe.train.lookahead_decay, recipe.train.lookahead) *
                                            std::pow(part, 3));
  }
  loss_sum += loss;
  accuracy_sum += accuracy;
  mark(&StepMarks::end);
  if (!first_step) {
    timed += batch.valid;
    timed_seconds += static_cast<double>(clock_now() - asked) * 1e-9;
    timed_waiting += static_cast<double>(given - asked) * 1e-9;
  }
  first_step = false;
  if (!log) return true;
  record([&] {
    std::vector<std::pair<std::string, double>> curves = {{"loss", loss}, {"accuracy", accuracy}, {"lr", lr}};
    if (metrics.back().first == "loss_scale") curves.push_back(metrics.back());
    track::Fields fields = {{"epoch", static_cast<double>(done()) / static_cast<double>(steps_per_epoch)}};
    for (const auto& [name, value] : curves) {
      fields.emplace_back(name, value);
      events->scalar("train/" + name, done(), value);
    }
    log->append(done(), fields);
  });
  mark(&StepMarks::end);
  return true;
}

void Trainer::State::report(double seconds) {
  step_seconds = step_seconds == 0 ? seconds : 0.9 * step_seconds + 0.1 * seconds;
  const int64_t in_epoch = (done() - 1) % steps_per_epoch + 1;
  const auto ratio = [&](int64_t steps) {
    return static_cast<double>(steps) / static_cast<double>(steps_per_epoch);
  };
  Status status;
  status.step = done();
  status.steps = total;
  status.epoch = ratio(done());
  status.epochs = ratio(total);
  status.unit = feed->unit();
  status.pictures = done() * recipe.train.batch;
  status.loss = loss_sum / static_cast<double>(in_epoch);
  status.accuracy = accuracy_sum / static_cast<double>(in_epoch);
  status.per_second = static_cast<double>(recipe.train.batch) / step_seconds;
  const double tests_left = test ? std::ceil(status.epochs) - std::floor(status.epoch) : 0;
  status.seconds_left = static_cast<double>(total - done()) * step_seconds + tests_left * test_seconds;
  observer.step(status);
}

void Trainer::State::end_epoch() {
  const double steps = static_cast<double>((done() - 1) % steps_per_epoch + 1);
  const double train_seconds = seconds_since(epoch_begin);
  const DataTimes times = data_times() - epoch_times;
  track::Fields fields = {{"epoch", static_cast<double>(done()) / static_cast<double>(steps_per_epoch)},
                          {"train/loss", loss_sum / steps},
                          {"train/accuracy", accuracy_sum / steps}};
  std::string text = fmt::format("epoch {:.4g}: train loss {:.4f}  accuracy {:.2f} %",
                                 static_cast<double>(done()) / static_cast<double>(steps_per_epoch),
                                 loss_sum / steps, 100 * accuracy_sum / steps);
  if (test) {
    // Test-time augmentation is for the result; on the way there it would cost as much as training.
    predictor->use_tta(done() == total ? recipe.eval.tta : "none");
    const Evaluation evaluation =
        evaluate(*predictor, *test, recipe.eval.metrics,
                 [&](int64_t at, int64_t of) { observer.busy("evaluating", at, of); });
    test_seconds = evaluation.seconds;
    last_test.clear();
    for (const eval::Measured& metric : evaluation.metrics) last_test.emplace_back(metric.name, metric.value);
    for (const auto& [name, value] : last_test) {
      fields.emplace_back("test/" + name, value);
      record([&] { events->scalar("test/" + name, done(), value); });
    }
    if (!last_test.empty()) text += fmt::format("; test {}", metrics_text(last_test));
  }
  fields.emplace_back("seconds", seconds_since(epoch_begin));
  fields.emplace_back("seconds_waiting", times.waiting);
  fields.emplace_back("seconds_loading_a_picture", times.cpu_per_picture());
  record([&] { log->append(done(), fields); });
  for (const std::string& line : skipped_samples(*feed, bad)) observer.message(line);
  if (test)
    for (const std::string& line : skipped_samples(*test, bad_tests)) observer.message(line);
  observer.message(text + fmt::format("; {:.1f} s", train_seconds + (test ? test_seconds : 0)));
  tell_verdict(times, "");
  if (done() == total && times_told > 1) tell_verdict(data_times() - first_times, "over all epochs, ");
  loss_sum = accuracy_sum = 0;
  epoch_begin = Clock::now();
  epoch_times = data_times();
}

DataTimes Trainer::State::data_times() const {
  const data::LoaderWork work = feed->work();
  return {timed,       timed_seconds, timed_waiting, work.pictures, work.cpu_seconds, work.queued_seconds,
          work.seconds};
}

std::string Trainer::State::verdict(const DataTimes& times) const {
  if (!pictures) {
    // Ready in memory but for putting batches together.
    if (times.wait_share() <= 0.05) return "";
    return fmt::format("data: the model waited {:.0f} % of the time for {}", 100 * times.wait_share(),
                       feed->unit());
  }
  DataMeans means{.cpus = available_cpus(), .cached = feed->cached()};
  if (pictures && times.wait_share() > 0.05 && !means.cached) {
    const int64_t bytes = pictures->cache_needed();
    if (bytes > 0 && memory_warning(bytes).empty()) means.cache_mb = (bytes >> 20) + 1;
    if (!stored) stored = pictures->streamed() ? StoredSize() : worthwhile_size(recipe, pictures->samples());
    means.stored_side = stored->side;
    means.stored_cost = stored->cost;
  }
  return data_verdict(times, means);
}

void Trainer::State::tell_verdict(const DataTimes& times, const std::string& of) {
  std::string line = verdict(times);
  if (line.empty()) return;
  ++times_told;
  observer.message(line.insert(line.find(' ') + 1, of));
}

void Trainer::State::open_journals() {
  control.emplace(*run);
  bad_list.emplace(run->bad_samples());
}

const data::FeedBatch* Trainer::State::take_batch() {
  // A source that gives nothing must not keep Ctrl-C from being heard.
  constexpr double look = 0.05, patience = 10;
  const auto begin = Clock::now();
  for (bool told = false; !feed->ready(look);) {
    if (observer.stop()) return nullptr;
    if (told || seconds_since(begin) < patience) continue;
    observer.message(fmt::format("step {} waits for data: {} gives nothing", done() + 1, feed->path()));
    told = true;
  }
  const auto saved = [&](const Error& error) {
    if (!run) return std::string(error.what());
    save();
    return fmt::format(
        "{}\nEverything up to step {} is saved: when the data is there again, --resume goes on.",
        error.what(), done());
  };
  try {
    return &feed->next();
  } catch (const InputError& error) {
    throw InputError(saved(error));
  } catch (const IoError& error) {
    throw IoError(saved(error));
  }
}

void Trainer::State::change(int64_t at, std::span<const Change> changes) {
  Recipe changed = recipe;
  apply_changes(changed, changes);
  check_recipe(changed, "millrace ctl");
  const int64_t steps = steps_of(changed, steps_per_epoch);
  if (steps != total && steps <= at)
    fail<InputError>("step {} is done already, so that {} steps cannot be all: at least {}", at, steps,
                     at + 1);
  const bool shares = changed.data.weights != recipe.data.weights;
  recipe = std::move(changed);
  if (shares && pictures) pictures->set_shares(shares_of(recipe, {}));
  if (steps != total) {
    total = steps;
    schedule = make_schedule(recipe, steps_per_epoch, total);
  }
  for (const Change& c : changes)
    observer.message(fmt::format("from step {} on {} = {} (millrace ctl)", at + 1, c.key, c.value));
}

void Trainer::State::take_changes() {
  const auto apply = [this](int64_t at, std::span<const Change> changes) { change(at, changes); };
  control->replay(done(), apply);
  record([&] { control->take(done(), apply); });
}

void Trainer::State::check_bad() {
  const auto check = [&](const data::Feed& from, const char* set, int64_t& listed) {
    const data::Tried tried = from.tried();
    if (tried.known_bad > listed) record([&] { bad_list->add(set, from.bad_samples()); });
    listed = tried.known_bad;
    if (!too_many_bad(tried, recipe.data.most_bad)) return;
    save();
    require_few_bad(from, recipe.data.most_bad,
                    fmt::format("All are listed in {}. Everything is saved: mend the data, or raise "
                                "data.most_bad in {}, then --resume goes on from step {}.",
                                run->bad_samples().string(), run->recipe().string(), done()));
  };
  check(*feed, "train", bad_listed);
  if (test) check(*test, "test", bad_tests_listed);
}

bool Trainer::State::checkpoint_due() const {
  if (recipe.train.checkpoint_steps > 0 && done() % recipe.train.checkpoint_steps == 0) return true;
  return recipe.train.checkpoint_minutes > 0 &&
         seconds_since(last_checkpoint) >= 60 * recipe.train.checkpoint_minutes;
}

Trainer::Trainer(Recipe recipe, Observer observer, int64_t most_pictures)
    : state_(std::make_unique<State>()) {
  state_->recipe = std::move(recipe);
  state_->most_pictures = most_pictures;
  state_->observer = std::move(observer);
  state_->open_data();
}

Trainer::~Trainer() = default;

const RunFolder& Trainer::begin(const std::filesystem::path& out, const std::string& name) {
  State& s = *state_;
  s.build(nullptr);
  s.run = RunFolder::create(out, name, s.recipe);
  s.log = std::make_unique<track::MetricsLog>(s.run->metrics());
  s.events = std::make_unique<track::EventWriter>(s.run->path());
  s.open_journals();
  s.save();
  return *s.run;
}

const RunFolder& Trainer::resume(const RunFolder& run) {
  State& s = *state_;
  s.run = run;
  s.run->lock();
  const auto loaded = load_newest_checkpoint(run.checkpoints());
  if (loaded)
    for (const std::string& warning : loaded->warnings) s.observer.message(warning);
  s.build(loaded ? &loaded->checkpoint : nullptr);
  if (loaded) s.restore(loaded->checkpoint);
  s.record([&] {
    s.log = std::make_unique<track::MetricsLog>(run.metrics(), s.done());
    s.events = std::make_unique<track::EventWriter>(run.path(), s.done());
  });
  s.record([&] { s.open_journals(); });
  s.control->replay(s.done(), [&](int64_t at, std::span<const Change> changes) { s.change(at, changes); });
  if (loaded)
    s.observer.message(fmt::format("going on from step {} of {}", s.done(), s.total));
  else
    s.save();
  return *s.run;
}

Program& Trainer::program() {
  if (!state_->step) state_->build(nullptr);
  return state_->step->program();
}

const Preparation& Trainer::preparation() const { return state_->prepared; }

DataTimes Trainer::data_times() const { return state_->data_times(); }
std::string Trainer::verdict(const DataTimes& times) const { return state_->verdict(times); }

double Trainer::rehearse_test() {
  State& s = *state_;
  program();
  return s.test ? evaluate(*s.predictor, *s.test, s.recipe.eval.metrics).seconds : 0;
}

void Trainer::rehearse(const std::function<bool(const StepMarks&)>& more) {
  program();
  StepMarks marks;
  do {
    if (!state_->one_step(&marks)) return;
  } while (more(marks));
}

Outcome Trainer::run() {
  State& s = *state_;
  s.last_checkpoint = s.epoch_begin = Clock::now();
  s.epoch_times = s.first_times = s.data_times();
  s.check_bad();
  while (s.done() < s.total) {
    s.take_changes();
    if (s.observer.stop()) {
      s.save();
      return {false, s.done(), s.test != nullptr, s.last_test};
    }
    const auto begin = Clock::now();
    if (!s.one_step()) continue;  // to be stopped above
    s.report(seconds_since(begin));
    const bool epoch_ends = s.done() % s.steps_per_epoch == 0 || s.done() == s.total;
    if (epoch_ends) s.end_epoch();
    // Before saving: what the new step chose by timing stands in the checkpoint that it would be resumed from.
    s.freeze();
    if (epoch_ends || s.checkpoint_due()) s.save();
    s.check_bad();
  }
  s.record([&] { write_file(s.run->model(), export_session(*s.session)); });
  return {true, s.done(), s.test != nullptr, s.last_test};
}

}  // namespace millrace::train
