// What comes before the first step: opening the data, building and compiling the model.
#include <algorithm>
#include <cmath>

#include "base/contains.h"
#include "base/format.h"
#include "base/memory_nodes.h"
#include "base/seconds_since.h"
#include "base/size_text.h"
#include "optim/kinds.h"
#include "task/feeds.h"
#include "task/fitting.h"
#include "task/model.h"
#include "task/open.h"
#include "task/predictor.h"
#include "task/rows.h"
#include "task/would_fit.h"
#include "train/auto_batch.h"
#include "train/checkpoint.h"
#include "train/init_weights.h"
#include "train/load_model.h"
#include "train/long_work.h"
#include "train/passes.h"
#include "train/trainer_state.h"

namespace millrace::train {

int64_t TrainerState::steps_of(const task::Recipe& recipe, int64_t in_epoch) {
  if (optim::optimizer_kinds().at(recipe.train.optimizer.kind).whole)  // half a pass measures nothing
    return static_cast<int64_t>(std::ceil(recipe.train.epochs)) * in_epoch;
  return recipe.train.steps > 0
             ? recipe.train.steps
             : std::max<int64_t>(1, std::llround(recipe.train.epochs * static_cast<double>(in_epoch)));
}

void TrainerState::open_data(const std::string& encoding) {
  if (recipe().train.batch == 0)
    task.recipe.train.batch =
        task::is_fitted(recipe()) ? task::Recipe().train.batch : fastest_batch(recipe(), observer);
  const auto begin = Clock::now();
  std::vector<std::string> notes;
  task::Opened opened = task::open_training(task.recipe, encoding, most_samples, reading(), notes);
  task = std::move(opened.task);
  training = std::move(opened.training);
  prepared.read = seconds_since(begin);
  prepared.unit = feed().unit();
  prepared.opened = feed().streamed() ? feed().samples_per_epoch() : feed().count();
  prepared.samples = training.count;
  prepared.cached = feed().cached();
  prepared.sample_bytes = static_cast<double>(feed().sample_bytes());
  for (const std::string& line : notes) observer.message(line);
  told = std::move(notes);
  for (const std::string& line : skipped_samples(feed(), bad)) observer.message(line);
  if (task::has_tests(recipe())) open_tests();
  if (encoding.empty() && most_samples == 0 && tests.samples && training.samples)
    for (const auto& input : task.inputs)
      if (const std::string line = input->repeated(*training.samples, *tests.samples); !line.empty())
        observer.message(line);
  steps_per_epoch = feed().batches_per_epoch();
  total = steps_of(recipe(), steps_per_epoch);
  // Of a sample an epoch is shorter; but an order may have lengths of its own.
  prepared.steps_per_epoch =
      prepared.opened == prepared.samples ? steps_per_epoch : prepared.samples / recipe().train.batch;
  prepared.steps = steps_of(recipe(), prepared.steps_per_epoch);
  prepared.epochs = static_cast<double>(prepared.steps) / static_cast<double>(prepared.steps_per_epoch);
}

void TrainerState::open_tests() {
  const auto begin = Clock::now();
  std::vector<std::string> notes;
  const int64_t most = most_samples > 0 ? std::max(most_samples, 2 * recipe().eval.batch) : 0;
  tests = task::open_tests(task, "", most, feed().memory(), reading(), notes);
  prepared.read_tests = seconds_since(begin);
  prepared.opened_tests = tests.feed->count();
  prepared.tests = tests.count;
  // Of one table there is nothing new to say about its columns.
  for (const std::string& line : notes)
    if (!contains(told, line)) observer.message(line);
  for (const std::string& line : skipped_samples(*tests.feed, bad_tests)) observer.message(line);
  const std::vector<std::string> metrics = task.metrics();
  const auto require = [&](const std::string& metric, const char* key) {
    if (!metric.empty() && !contains(metrics, metric))
      fail<InputError>("{} = \"{}\" is none of what the test reports ({}): add it to eval.metrics", key,
                       metric, fmt::join(metrics, ", "));
  };
  require(recipe().train.keep_best, "train.keep_best");
  const Settings& schedule_by = recipe().train.schedule.settings;
  if (schedule_by.find("metric")) require(schedule_by.text("metric"), "train.schedule.metric");
}

/// Compiles the programs. With a checkpoint its recorded choices are used.
void TrainerState::build(const Checkpoint* from) {
  auto begin = Clock::now();
  {
    const LongWork work(observer.message, "building the network");
    task::make_network(task, true);
    if (task::fitted_model(task)) return build_fitted(from);
  }
  if (from)
    restore_model(task, *from, converts);
  else
    task::fit_network(task, {recipe(), training.first ? training.first : training.samples});
  if (!from) {
    for (const std::string& line : task.network->model().notes) observer.message(line);
    for (const std::string& line : init_weights(task)) observer.message(line);
  }
  prepared.fit = seconds_since(begin);
  begin = Clock::now();
  nn::Module& model = *task.network;
  freezes = parse_freezes(recipe().train.freeze, model, steps_per_epoch);
  // Before anything freezes: a run that is resumed later looks ahead with the same parameters.
  if (recipe().train.lookahead > 0) lookahead = std::make_unique<optim::Lookahead>(model);
  freeze_due(model, freezes, from ? from->step : 0);
  {
    const LongWork work(observer.message,
                        fmt::format("compiling the step of a network of {} tensors of weights",
                                    thousands(std::ssize(model.parameters()))));
    build_steps();
  }
  build_mean();
  make_schedule();
  for (const std::string& name : task::step_metrics(task)) sums.emplace_back(name, 0.0);
  if (tests.feed) {
    const LongWork work(observer.message, "compiling the test");
    build_predictor();
  }
  prepared.compile = seconds_since(begin);
  const Program& program = step->program();
  const std::string& precision = recipe().train.precision;
  if (precision.starts_with("bf16") && program.precision() == "fp32")
    observer.message(fmt::format(
        "train.precision = \"{}\": this CPU has no bf16 units, so the step computes in f32, which is "
        "faster here",
        precision));
  std::string largest;
  for (const auto& [bytes, what] : program.peak_breakdown(3))
    largest += fmt::format("{}{:.1f} MB {}", largest.empty() ? "; largest at the peak: " : ", ",
                           static_cast<double>(bytes) / 1e6, what);
  observer.message(fmt::format("{} parameters; memory of a step: {:.1f} MB{}", model.parameter_count(),
                               static_cast<double>(program.arena_bytes() + program.bound_bytes()) / 1e6,
                               largest));
  // Intermediate values are taken by the first step; the rest is there.
  if (const std::string warning = memory_warning(program.arena_bytes()); !warning.empty()) {
    const std::string ways = task::would_fit(recipe().train, 0, static_cast<double>(program.arena_bytes()),
                                             static_cast<double>(free_memory()));
    observer.message("memory: " + warning + (ways.empty() ? "" : "; what would fit: about " + ways));
  }
}

/// Compiled before it is needed, so that the choices it makes stand in every checkpoint.
void TrainerState::build_predictor() {
  predictor = std::make_unique<task::Predictor>(task);
  const std::vector<int64_t> lengths = tests.feed->lengths();
  for (const int64_t length : lengths.empty() ? std::vector<int64_t>{0} : lengths)
    predictor->prepare(*tests.feed, length);
}

void TrainerState::build_steps() {
  const std::vector<data::Field> fields = step_fields();
  std::vector<int64_t> lengths = feed().lengths();
  if (lengths.empty()) lengths = {0};
  by_length.clear();
  step = nullptr;
  const task::Recipe::Train& train = recipe().train;
  const optim::Rates rates = task::rates_of(task);
  const optim::OptimizerKind& kind = optim::optimizer_kinds().at(train.optimizer.kind);
  // The longest first: it is the one that may not fit into memory.
  for (auto length = lengths.rbegin(); length != lengths.rend(); ++length) {
    optim::TrainOptions options{static_cast<uint64_t>(train.seed),
                                task::compile_options(task, train.precision, train.memory),
                                {},
                                train.accumulate};
    options.share = step;
    options.ema = train.ema;
    options.guard = guards(recipe());
    options.norms = train.log_every > 0 && most_samples == 0;
    auto made = std::make_unique<optim::TrainStep>(
        task.network, task::specs_of(fields, train.batch, *length), task::step_function(task, fields),
        kind.whole ? kind.make(train.optimizer.settings, {})
                   : optim::make_optimizer(kind, train.optimizer.settings, train.clip_norm, train.clip_value,
                                           *task.network, rates),
        options);
    for (const auto& [key, choice] : made->program().choices()) task.choices.emplace(key, choice);
    if (!step) step = made.get();
    by_length.emplace(*length, std::move(made));
    tokens_of[*length] = task::tokens_of_row(task, *length);
  }
  if (kind.whole && !passes)
    passes = std::make_unique<Passes>(train.optimizer.settings, *task.network, *step);
}

std::vector<data::Field> TrainerState::step_fields() const {
  const auto own = feed().fields();
  std::vector<data::Field> fields(own.begin(), own.end());
  if (optim::optimizer_kinds().at(recipe().train.optimizer.kind).whole)
    for (data::Field& extra : Passes::extra_fields(task, own)) fields.push_back(std::move(extra));
  return fields;
}

void TrainerState::make_schedule() {
  const task::Recipe::Train& train = recipe().train;
  const Settings& settings = train.schedule.settings;
  schedule = optim::make_schedule(optim::schedule_kinds().at(train.schedule.kind), settings,
                                  {optim::learning_rate(train.optimizer.settings), steps_per_epoch, total});
  const double epochs = static_cast<double>(total) / static_cast<double>(steps_per_epoch);
  if (most_samples == 0 && settings.find("warmup") && settings.number("warmup") > epochs)
    observer.message(
        fmt::format("warning: train.schedule.warmup = {} (epochs) is longer than this training, of {:.3g}: "
                    "its rate will not reach train.optimizer.lr",
                    settings.number("warmup"), epochs));
}

}  // namespace millrace::train
