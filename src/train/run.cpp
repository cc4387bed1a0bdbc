#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include <millrace/run.h>
#include <millrace/weights.h>

#include "base/file.h"
#include "base/format.h"
#include "data/table/select.h"
#include "task/calibrate.h"
#include "task/calibrated.h"
#include "task/evaluate.h"
#include "task/generate.h"
#include "task/model.h"
#include "task/predict.h"
#include "train/auto_batch.h"
#include "train/calibration_file.h"
#include "train/checkpoint.h"
#include "train/init_weights.h"
#include "train/load_model.h"
#include "train/quarantine.h"
#include "train/run_folder.h"
#include "train/trainer.h"

namespace millrace {

struct Run::State {
  train::Observer observer;
  std::filesystem::path folder;
  int64_t step = 0;  // of the checkpoint in the folder that the weights are of
  std::string calibrated_on;
  train::Outcome outcome;
  task::Task task;
  std::shared_ptr<nn::Module> model;  // of the task
  std::optional<task::Task>
      trained;                     // made the training feed, where that was opened for a model that was there
  task::TaskFeed training, tests;  // their feeds may be null
  std::string tested;              // the path of `tests`, as it was asked for
  std::shared_ptr<const data::Dataset> tested_set;  // or the samples
  std::unique_ptr<task::Predictor> predictor;

  task::ReadProgress reading() {
    return
        [this](const std::string& what, int64_t at, int64_t of) { observer.busy("reading " + what, at, of); };
  }
  void tell(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) observer.message(line);
  }
  void tell_skipped(const data::Feed& feed) {
    std::set<int64_t> named;
    tell(train::skipped_samples(feed, named));
  }
  /// The training data: for a task that knows them, or to learn it from them.
  task::Opened open_training(const std::string& encoding) {
    std::vector<std::string> notes;
    task::Opened opened = task::open_training(task.recipe, encoding, 0, reading(), notes);
    tell(notes);
    tell_skipped(*opened.training.feed);
    return opened;
  }
  /// What a text names, or these samples; neither: the recipe's test set.
  data::Feed& open_tests(const std::string& data, const std::shared_ptr<const data::Dataset>& samples) {
    if (!tests.feed || tested != data || tested_set != samples) {
      std::vector<std::string> notes;
      tests = task::open_tests(task, data, 0, training.feed ? training.feed->memory() : 0, reading(), notes,
                               samples);
      tested = data;
      tested_set = samples;
      tell(notes);
    }
    return *tests.feed;
  }
  task::Predictor& predicting(bool views) {
    if (!predictor) predictor = std::make_unique<task::Predictor>(task, false, task::Weights::trained);
    predictor->use_views(views);
    return *predictor;
  }
};

namespace {

/// Gathers what predict_samples() and predict_arguments() hand on.
class PredictionRows {
 public:
  explicit PredictionRows(const task::Task& task) : task_(task), rows_(task.outputs.size()) {
    for (const auto& output : task.outputs)
      if (output->at_places())
        fail<InputError>("{}: something is predicted at each place of a row, not one thing for a sample: {}",
                         output->kind().name,
                         output->from() ? "generate() goes on with a text"
                                        : "the exported model and millrace predict give it");
  }
  void add(const std::string& name, const std::vector<std::span<const float>>& logits) {
    made_.samples.push_back(name);
    for (size_t k = 0; k < logits.size(); ++k)
      rows_[k].insert(rows_[k].end(), logits[k].begin(), logits[k].end());
  }
  void failed(std::string message) { made_.failed.push_back(std::move(message)); }

  Predictions finish() {
    const auto count = static_cast<int64_t>(made_.samples.size());
    for (size_t k = 0; k < rows_.size(); ++k) {
      const task::Output& output = *task_.outputs[k];
      Array logits(f32, {count, output.width()});
      std::copy(rows_[k].begin(), rows_[k].end(), logits.as<float>().begin());
      Array values =
          count == 0 ? logits.clone() : output.predictions(Tensor(logits)).to_array().converted(f32);
      made_.outputs.push_back({output.name(), std::move(logits), std::move(values), output.classes()});
    }
    return std::move(made_);
  }

 private:
  const task::Task& task_;
  std::vector<std::vector<float>> rows_;  // logits of each output, one sample after the other
  Predictions made_;
};

/// The same for all ways to name a file, or a folder.
std::string place_of(const std::string& data) {
  std::error_code error;
  const std::filesystem::path place = std::filesystem::canonical(data, error);
  return error ? data : place.string();
}

}  // namespace

Run::Run(std::unique_ptr<State> state) : state_(std::move(state)) {}
Run::Run(Run&& other) noexcept = default;
Run& Run::operator=(Run&& other) noexcept = default;
Run::~Run() = default;

Run Run::train(const task::Recipe& recipe, const std::filesystem::path& folder,
               const train::Observer& observer) {
  task::check_recipe(recipe, "the recipe");
  std::filesystem::path path;
  train::Outcome outcome;
  {
    train::Trainer trainer(recipe, observer);
    path = trainer.begin(folder, "run").path();
    outcome = trainer.run();
  }
  Run run = open(path, observer, {}, "", recipe.data.sets);
  run.state_->outcome = std::move(outcome);
  return run;
}

Run Run::resume(const std::filesystem::path& folder, const train::Observer& observer,
                const task::DataSets& sets) {
  train::Outcome outcome;
  {
    task::Recipe recipe = train::recipe_of(folder);
    recipe.data.sets = sets;
    train::Trainer trainer(std::move(recipe), observer);
    trainer.resume(train::RunFolder::open(folder));
    outcome = trainer.run();
  }
  Run run = open(folder, observer, {}, "", sets);
  run.state_->outcome = std::move(outcome);
  return run;
}

Run Run::open(const std::filesystem::path& folder, const train::Observer& observer,
              std::span<const std::string> changes, const std::string& checkpoint,
              const task::DataSets& sets) {
  auto state = std::make_unique<State>();
  state->observer = observer;
  state->folder = folder;
  std::vector<std::string> warnings;
  state->task = train::load_model(folder, warnings, changes, checkpoint, &state->step);
  state->task.recipe.data.sets = sets;
  state->tell(warnings);
  state->calibrated_on = train::calibration_data(folder);
  state->model = state->task.network;
  return Run(std::move(state));
}

Run Run::prepare(const task::Recipe& recipe, const train::Observer& observer) {
  task::check_recipe(recipe, "the recipe");
  auto state = std::make_unique<State>();
  state->observer = observer;
  state->task.recipe = recipe;
  if (recipe.train.batch == 0) state->task.recipe.train.batch = train::fastest_batch(recipe, observer);
  task::Opened opened = state->open_training("");
  state->task = std::move(opened.task);
  state->training = std::move(opened.training);
  task::make_network(state->task);
  const task::TaskFeed& made = state->training;
  task::fit_network(state->task, {state->task.recipe, made.first ? made.first : made.samples});
  state->tell(state->task.network->model().notes);
  state->tell(train::init_weights(state->task));
  state->model = state->task.network;
  return Run(std::move(state));
}

const task::Recipe& Run::recipe() const { return state_->task.recipe; }
const std::filesystem::path& Run::folder() const { return state_->folder; }
const train::Outcome& Run::outcome() const { return state_->outcome; }
const std::shared_ptr<nn::Module>& Run::model() const { return state_->model; }

data::Feed& Run::training() {
  State& s = *state_;
  if (!s.training.feed) {
    task::Opened opened = s.open_training(s.task.encoding());
    s.trained = std::move(opened.task);
    s.training = std::move(opened.training);
  }
  return *s.training.feed;
}

data::Feed& Run::tests(const std::string& data) {
  if (data.empty() && !task::has_tests(recipe()))
    fail<InputError>("the recipe names no test set: say what to measure on");
  return state_->open_tests(data, nullptr);
}

data::Feed& Run::tests(const std::shared_ptr<const data::Dataset>& samples) {
  data::require_set(samples);
  return state_->open_tests("", samples);
}

std::vector<optim::TensorSpec> Run::step_inputs(int64_t length) {
  return task::specs_of(training().fields(), recipe().train.batch, length);
}

optim::StepFunction Run::step_function() {
  const auto fields = training().fields();
  return task::step_function(state_->task, {fields.begin(), fields.end()});
}

task::Evaluation Run::evaluate(const std::string& data) {
  (void)tests(data);
  return evaluate_tests();
}

task::Evaluation Run::evaluate(const std::shared_ptr<const data::Dataset>& samples) {
  (void)tests(samples);
  return evaluate_tests();
}

task::Evaluation Run::evaluate_tests() {
  State& s = *state_;
  const data::Feed& feed = *s.tests.feed;
  task::Evaluation result =
      task::evaluate(s.predicting(true), s.task, s.tests,
                     [&](int64_t done, int64_t total) { s.observer.busy("evaluating", done, total); });
  train::require_few_bad(
      feed, s.task.recipe.data.most_bad,
      fmt::format("Mend the data, or raise data.most_bad{}.",
                  s.folder.empty() ? "" : " in " + train::RunFolder::open(s.folder).recipe().string()));
  s.tell_skipped(feed);
  if (!calibrations().empty() && place_of(feed.path()) == s.calibrated_on)
    s.observer.message(fmt::format(
        "the model was calibrated on {}: how well calibrated it is, other samples must say", feed.path()));
  return result;
}

std::vector<task::Calibrated> Run::calibrate(const task::CalibrateOptions& options) {
  State& s = *state_;
  (void)task::outputs_to_calibrate(s.task, options);  // what cannot be is said before data is read
  const data::Feed& feed = tests(options.data);
  std::vector<task::Calibrated> results =
      task::calibrate(s.task, s.tests, options,
                      [&](int64_t done, int64_t total) { s.observer.busy("evaluating", done, total); });
  s.predictor.reset();  // what it has compiled is not calibrated
  s.calibrated_on = place_of(feed.path());
  s.tell_skipped(feed);
  if (s.folder.empty()) return results;
  train::write_calibration(s.folder, s.task, s.step, s.calibrated_on);
  // The model that training left is of the newest checkpoint.
  const train::RunFolder run = train::RunFolder::open(s.folder);
  const auto kept = train::list_checkpoints(run.checkpoints());
  if (std::filesystem::exists(run.model()) && !kept.empty() &&
      kept.back().filename() == train::checkpoint_name(s.step))
    s.tell(export_onnx(run.model()));
  return results;
}

std::vector<std::string> Run::calibrations() const {
  std::vector<std::string> lines;
  for (const auto& output : state_->task.outputs)
    if (!output->calibration().empty())
      lines.push_back(fmt::format("{}{}{}", output->name(), output->name().empty() ? "" : ": ",
                                  task::calibration_text(output->calibration())));
  return lines;
}

Predictions Run::predict(const std::vector<std::string>& samples) {
  State& s = *state_;
  PredictionRows rows(s.task);
  task::predict_arguments(s.predicting(false), s.task, samples,
                          {[&](const std::string& name, const auto& logits, auto) { rows.add(name, logits); },
                           [&](const std::string& message) { rows.failed(message); }});
  return rows.finish();
}

Predictions Run::predict(const std::shared_ptr<const data::Dataset>& samples) {
  State& s = *state_;
  data::require_set(samples);
  PredictionRows rows(s.task);
  const auto opened = task::as_opened(s.task, samples);
  task::predict_samples(s.predicting(false), s.task, opened,
                        {[&](int64_t sample, const auto& logits) { rows.add(opened->name(sample), logits); },
                         [&](int64_t sample, const std::string& why) {
                           rows.failed(fmt::format("{}: {}", opened->name(sample), why));
                         }});
  return rows.finish();
}

std::string Run::generate(const std::string& text, int64_t tokens) {
  return task::go_on(state_->predicting(false), state_->task, text, tokens, 1).text;
}

std::vector<std::string> Run::export_onnx(const std::filesystem::path& path, int height, int width,
                                          int opset) {
  std::vector<std::string> notes;
  write_file(path, task::export_model(state_->task, notes, height, width, opset));
  return notes;
}

void Run::export_weights(const std::filesystem::path& path) {
  const nn::MergedAdapters merged(*state_->task.network);
  nn::save_weights(*state_->task.network, path);
}

void Run::save(const std::filesystem::path& folder, int64_t step) {
  State& s = *state_;
  const train::RunFolder run = train::RunFolder::create(folder, "run", s.task.recipe);
  train::Checkpoint checkpoint;
  checkpoint.step = step;
  train::store_model(s.task, checkpoint);
  train::save_checkpoint(run.checkpoints(), checkpoint, 1);
  s.folder = run.path();
  s.step = step;
  train::write_calibration(s.folder, s.task, step, s.calibrated_on);
}

}  // namespace millrace
