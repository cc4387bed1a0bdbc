#include "train/trainer.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/format.h"
#include "base/memory_nodes.h"
#include "data/sample.h"
#include "eval/metric.h"
#include "runtime/run_clock.h"
#include "track/metrics_log.h"
#include "track/tensorboard.h"
#include "train/evaluate.h"
#include "train/freeze.h"
#include "train/optimizer.h"

namespace millrace::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// "accuracy 97.31 %  log-loss 0.0912"
std::string metrics_text(const std::vector<std::pair<std::string, double>>& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics)
    text += fmt::format(
        "{}{} {}", text.empty() ? "" : "  ", name,
        eval::metric_kind(name).share ? fmt::format("{:.2f} %", 100 * value) : fmt::format("{:.4f}", value));
  return text;
}

optim::StepFunction step_function(double label_smoothing) {
  return [label_smoothing](nn::Module& model, std::span<const Tensor> inputs) {
    const Tensor logits = model(inputs[0]);
    const Tensor right = cast(equal(argmax(logits, 1), inputs[1]), f32);
    return optim::StepResult{cross_entropy(logits, inputs[1], label_smoothing), {{"accuracy", right.mean()}}};
  };
}

/// With samples that are of two classes, in shares: of the loss and of being right. And with weights of the samples.
optim::StepFunction soft_step_function(double label_smoothing, bool mixed, bool weighted) {
  return [=](nn::Module& model, std::span<const Tensor> inputs) {
    const Tensor logits = model(inputs[0]), best = argmax(logits, 1);
    const int64_t classes = logits.dim(1).size(), batch = logits.dim(0).size();
    Tensor target = one_hot(inputs[1], classes), right = cast(equal(best, inputs[1]), f32);
    if (mixed) {
      const Tensor kept = inputs[3], column = reshape(kept, {batch, 1});
      target = target * column + one_hot(inputs[2], classes) * (1 - column);
      right = right * kept + cast(equal(best, inputs[2]), f32) * (1 - kept);
    }
    if (!weighted)
      return optim::StepResult{cross_entropy(logits, target, label_smoothing), {{"accuracy", right.mean()}}};
    const Tensor smooth = target * (1 - label_smoothing) + label_smoothing / static_cast<double>(classes);
    const Tensor losses = -(smooth * log_softmax(logits, 1)).sum({1});
    return optim::StepResult{(losses * inputs.back()).mean(), {{"accuracy", right.mean()}}};
  };
}

}  // namespace

struct Trainer::State {
  Recipe recipe;
  Observer observer;
  std::unique_ptr<data::Loader> loader;
  std::optional<TestSet> test;
  std::set<int64_t> bad, bad_tests;  // pictures already named as unreadable
  std::optional<RunFolder> run;

  std::optional<Session> session;
  std::unique_ptr<optim::TrainStep> step;
  std::unique_ptr<Predictor> predictor;
  std::optional<optim::Lookahead> lookahead;
  optim::Schedule schedule;
  std::vector<Freeze> freezes;
  std::unique_ptr<track::MetricsLog> log;
  std::unique_ptr<track::EventWriter> events;

  int64_t most_pictures = 0;  // > 0: a sample
  Preparation prepared;
  int64_t steps_per_epoch = 0, total = 0;
  double loss_sum = 0, accuracy_sum = 0;  // of this epoch's steps
  std::vector<std::pair<std::string, double>> last_test;
  Clock::time_point last_checkpoint, epoch_begin;
  double step_seconds = 0, test_seconds = 0;  // lately

  int64_t done() const { return step->step(); }
  ReadProgress reading() {
    return [this](const std::string& what, int64_t done_, int64_t total_) {
      observer.busy("reading " + what, done_, total_);
    };
  }

  void open_data();
  void open_training();
  void open_tests();
  void build(const Checkpoint* from);
  void build_step();
  void freeze();
  void fit();
  Array first_batch_of_test();
  Checkpoint checkpoint() const;
  void save();
  /// Runs what writes into the run folder; when the disk is full or gone, the message says what is safe.
  void record(const std::function<void()>& write) const;
  void restore(const Checkpoint& from);
  void one_step(StepMarks* marks = nullptr);
  void check_finite(double loss) const;
  void end_epoch();
  void report(double seconds);
  bool checkpoint_due() const;
};

void Trainer::State::open_data() {
  open_training();
  const data::Source* source = &loader->source();
  const std::string& path = source->path();
  for (const auto& list : {source->notes(), skipped_pictures(*loader, bad), empty_classes(*loader)})
    for (const std::string& line : list) observer.message(line);
  observer.message(fmt::format("{}: {} pictures of {}×{}, {} classes", path, source->count(),
                               loader->extent().width, loader->extent().height, source->classes().size()));
  if (!recipe.data.test.empty()) {
    open_tests();
    for (const auto& list : {test->loader->source().notes(), skipped_pictures(*test->loader, bad_tests),
                             empty_classes(*test->loader)})
      for (const std::string& line : list) observer.message(line);
  }
  const auto steps_of = [&](int64_t in_epoch) {
    return recipe.train.steps > 0
               ? recipe.train.steps
               : std::max<int64_t>(1, std::llround(recipe.train.epochs * static_cast<double>(in_epoch)));
  };
  steps_per_epoch = loader->batches_per_epoch();
  total = steps_of(steps_per_epoch);
  // Of a sample of the pictures an epoch is shorter; but an order may have lengths of its own.
  prepared.steps_per_epoch =
      prepared.opened == prepared.pictures ? steps_per_epoch : prepared.pictures / recipe.train.batch;
  prepared.steps = steps_of(prepared.steps_per_epoch);
  prepared.epochs = static_cast<double>(prepared.steps) / static_cast<double>(prepared.steps_per_epoch);
}

void Trainer::State::open_training() {
  const auto begin = Clock::now();
  std::shared_ptr<const data::Source> source = open_named(recipe.data.train, recipe.data.where);
  prepared.open = seconds_since(begin);
  prepared.pictures = source->count();
  // Some batches at least, so that the order of an epoch is a usual one.
  if (most_pictures > 0) source = data::sample_of(source, std::max(most_pictures, 4 * recipe.train.batch));
  const auto begin_reading = Clock::now();
  loader = training_loader(recipe, source, reading());
  prepared.opened = source->count();
  prepared.picture_bytes = static_cast<double>(loader->extent().bytes());
  const double all = prepared.picture_bytes * static_cast<double>(prepared.pictures);
  if (loader->cached() && all > static_cast<double>(recipe.data.cache_mb << 20)) {
    // The sample would be kept in memory, the whole set will not.
    recipe.data.cache_mb = 0;
    loader = training_loader(recipe, source, reading());
  }
  prepared.cached = loader->cached();
  prepared.read = seconds_since(begin_reading);
}

void Trainer::State::open_tests() {
  const auto begin = Clock::now();
  std::shared_ptr<const data::Source> source = open_named(recipe.data.test);
  prepared.open += seconds_since(begin);
  prepared.tests = source->count();
  if (most_pictures > 0) source = data::sample_of(source, std::max(most_pictures, 2 * recipe.eval.batch));
  prepared.opened_tests = source->count();
  const auto begin_reading = Clock::now();
  test = open_test_set(source, recipe, loader->source().classes(), loader->extent(), reading());
  prepared.read_tests = seconds_since(begin_reading);
}

/// What comes from the data: normalisation, and parameters that the model takes from pictures.
void Trainer::State::fit() {
  const auto source = std::shared_ptr<const data::Source>(std::shared_ptr<void>(), &loader->source());
  const auto begin = Clock::now();
  const PictureSample sample = sample_pictures(recipe, source);
  prepared.sample = seconds_since(begin);
  prepared.sampled = sample.pictures.shape()[0].size();
  if (recipe.data.mean.empty()) {
    recipe.data.mean = sample.mean;
    recipe.data.std = sample.std;
  }
  session = make_session(recipe, loader->source().classes(), loader->extent());
  if (session->model.fit) session->model.fit(sample.pictures);
}

/// Compiles the programs. With a checkpoint its recorded choices are used.
void Trainer::State::build(const Checkpoint* from) {
  if (from) {
    if (from->classes != loader->source().classes())
      fail<InputError>(
          "{}: its classes are {}, the run was begun with {}: bring the data back, or begin a new run",
          loader->source().path(), fmt::join(loader->source().classes(), ", "),
          fmt::join(from->classes, ", "));
    session = make_session(recipe, from->classes, loader->extent());
    restore_session(*session, *from);
  } else {
    fit();
  }
  const auto begin = Clock::now();
  const data::Extent& e = session->extent;
  freezes = parse_freezes(recipe.train.freeze, *session->model.module, steps_per_epoch);
  // Before anything freezes: a run that is resumed later looks ahead with the same parameters.
  if (recipe.train.lookahead > 0) lookahead.emplace(*session->model.module);
  freeze_due(*session->model.module, freezes, from ? from->step : 0);
  build_step();
  schedule = make_schedule(recipe, steps_per_epoch, total);
  if (test) {
    // Compiled now, so that the choices it makes stand in every checkpoint.
    predictor = std::make_unique<Predictor>(*session, "none", recipe.train.precision);
    predictor->logits(Array(u8, {test->loader->batch_size(), e.channels, e.height, e.width}));
  }
  prepared.compile = seconds_since(begin);
  const Program& program = step->program();
  if (recipe.train.precision.starts_with("bf16") && program.precision() == "fp32")
    observer.message(fmt::format(
        "train.precision = \"{}\": this CPU has no bf16 units, so the step computes in f32, which is "
        "faster here",
        recipe.train.precision));
  std::string largest;
  for (const auto& [bytes, what] : program.peak_breakdown(3))
    largest += fmt::format("{}{:.1f} MB {}", largest.empty() ? "; largest at the peak: " : ", ",
                           static_cast<double>(bytes) / 1e6, what);
  observer.message(
      fmt::format("{} parameters; memory of a step: {:.1f} MB{}", session->model.module->parameter_count(),
                  static_cast<double>(program.arena_bytes() + program.bound_bytes()) / 1e6, largest));
  // Intermediate values are taken by the first step; the rest is there.
  if (const std::string warning = memory_warning(program.arena_bytes()); !warning.empty())
    observer.message("memory: " + warning);
}

void Trainer::State::build_step() {
  const data::Extent& e = session->extent;
  std::vector<optim::TensorSpec> inputs = {
      {"pictures", {u8, {recipe.train.batch, e.channels, e.height, e.width}}},
      {"labels", {i64, {recipe.train.batch}}}};
  const bool mixed = !recipe.data.mix.empty();
  if (mixed) {
    inputs.push_back({"mixed_labels", {i64, {recipe.train.batch}}});
    inputs.push_back({"mix", {f32, {recipe.train.batch}}});
  }
  const bool weighted = loader->weighted();
  if (weighted) inputs.push_back({"weights", {f32, {recipe.train.batch}}});
  const double smoothing = recipe.train.loss.label_smoothing;
  step = std::make_unique<optim::TrainStep>(
      session->model.module, inputs,
      mixed || weighted ? soft_step_function(smoothing, mixed, weighted) : step_function(smoothing),
      make_optimizer(recipe, *session->model.module),
      optim::TrainOptions{static_cast<uint64_t>(recipe.train.seed),
                          compile_options(*session, recipe.train.precision, recipe.train.memory),
                          {},
                          recipe.train.accumulate});
  for (const auto& [key, choice] : step->program().choices()) session->choices.emplace(key, choice);
}

/// Where parameters stop training, a step without their gradients goes on with the others' optimiser state.
void Trainer::State::freeze() {
  const int64_t at = done();
  if (at == total || !freeze_due(*session->model.module, freezes, at)) return;
  std::map<std::string, Array> state;
  for (const auto& [name, array] : step->state()) state.emplace(name, array.clone());
  step.reset();
  build_step();
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
  const data::Cursor cursor = loader->cursor();
  c.counters["data.epoch"] = cursor.epoch;
  c.counters["data.position"] = cursor.position;
  c.counters["data.pictures"] = loader->source().count();
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
  const auto pictures = from.counters.find("data.pictures");
  if (const int64_t now = loader->source().count();
      pictures != from.counters.end() && pictures->second != now)
    fail<InputError>(
        "{}: has {} pictures, the run was begun with {}: bring the data back, or begin a new run",
        loader->source().path(), now, pictures->second);
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
  data::Cursor cursor = loader->cursor();
  cursor.epoch = from.counters.at("data.epoch");
  cursor.position = from.counters.at("data.position");
  loader->seek(cursor);
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

void Trainer::State::one_step(StepMarks* marks) {
  const auto mark = [&](int64_t StepMarks::*part) {
    if (marks) marks->*part = clock_now();
  };
  mark(&StepMarks::begin);
  const data::Batch& batch = loader->next();
  mark(&StepMarks::data);
  std::memcpy(step->input(0).data(), batch.pictures.data(), batch.pictures.size());
  std::memcpy(step->input(1).data(), batch.labels.data(), batch.labels.size() * sizeof(int64_t));
  if (!batch.mix.empty()) {
    std::memcpy(step->input(2).data(), batch.mixed_labels.data(),
                batch.mixed_labels.size() * sizeof(int64_t));
    std::memcpy(step->input(3).data(), batch.mix.data(), batch.mix.size() * sizeof(float));
  }
  if (!batch.weights.empty())
    std::memcpy(step->input(batch.mix.empty() ? 2 : 4).data(), batch.weights.data(),
                batch.weights.size() * sizeof(float));
  mark(&StepMarks::inputs);
  const double lr = schedule(done());
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
  if (!log) return;
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
    last_test = evaluation.metrics;
    for (const auto& [name, value] : evaluation.metrics) {
      fields.emplace_back("test/" + name, value);
      record([&] { events->scalar("test/" + name, done(), value); });
    }
    if (!evaluation.metrics.empty()) text += fmt::format("; test {}", metrics_text(evaluation.metrics));
  }
  fields.emplace_back("seconds", seconds_since(epoch_begin));
  record([&] { log->append(done(), fields); });
  for (const std::string& line : skipped_pictures(*loader, bad)) observer.message(line);
  if (test)
    for (const std::string& line : skipped_pictures(*test->loader, bad_tests)) observer.message(line);
  observer.message(text + fmt::format("; {:.1f} s", train_seconds + (test ? test_seconds : 0)));
  loss_sum = accuracy_sum = 0;
  epoch_begin = Clock::now();
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

double Trainer::rehearse_test() {
  State& s = *state_;
  program();
  return s.test ? evaluate(*s.predictor, *s.test, s.recipe.eval.metrics).seconds : 0;
}

void Trainer::rehearse(const std::function<bool(const StepMarks&)>& more) {
  program();
  StepMarks marks;
  do state_->one_step(&marks);
  while (more(marks));
}

Outcome Trainer::run() {
  State& s = *state_;
  s.last_checkpoint = s.epoch_begin = Clock::now();
  while (s.done() < s.total) {
    if (s.observer.stop()) {
      s.save();
      return {false, s.done(), s.test.has_value(), s.last_test};
    }
    const auto begin = Clock::now();
    s.one_step();
    s.report(seconds_since(begin));
    const bool epoch_ends = s.done() % s.steps_per_epoch == 0 || s.done() == s.total;
    if (epoch_ends) s.end_epoch();
    // Before saving: what the new step chose by timing stands in the checkpoint that it would be resumed from.
    s.freeze();
    if (epoch_ends || s.checkpoint_due()) s.save();
  }
  s.record([&] { write_file(s.run->model(), export_session(*s.session)); });
  return {true, s.done(), s.test.has_value(), s.last_test};
}

}  // namespace millrace::train
