// Baselines that learn: small trainings by the recipe's data, with another model.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <unistd.h>

#include <millrace/run.h>

#include "base/contains.h"
#include "base/file.h"
#include "base/format.h"
#include "base/seconds_since.h"
#include "baseline/context.h"
#include "baseline/neighbours.h"
#include "nn/models/architecture.h"
#include "optim/kinds.h"
#include "track/metrics_log.h"
#include "train/trainer.h"

namespace millrace::baseline {
namespace {

namespace fs = std::filesystem;

/// Gone with all that is in it.
class ShortLivedFolder {
 public:
  ShortLivedFolder() {
    std::string name = (fs::temp_directory_path() / "millrace-baseline-XXXXXX").string();
    if (!::mkdtemp(name.data()))
      fail<IoError>("no folder can be made in {}", fs::temp_directory_path().string());
    path_ = name;
  }
  ~ShortLivedFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ShortLivedFolder(const ShortLivedFolder&) = delete;
  ShortLivedFolder& operator=(const ShortLivedFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void choose_optimizer(task::Recipe& recipe, const std::string& kind) {
  recipe.train.optimizer = {};
  recipe.train.optimizer.settle("train.optimizer", kind,
                                optim::optimizer_settings(optim::optimizer_kinds().at(kind)));
}

/// The recipe with nothing of its training but the seed, and no model yet: one that learns by lbfgs, or is
/// fitted.
task::Recipe plain_recipe(const Context& context) {
  task::Recipe recipe = context.task().recipe;
  const int64_t seed = recipe.train.seed;
  recipe.train = {};
  recipe.train.seed = seed;
  choose_optimizer(recipe, "lbfgs");
  recipe.train.schedule.settle("train.schedule", "constant", optim::schedule_kinds().at("constant").settings);
  recipe.train.keep_checkpoints = 1;
  recipe.train.checkpoint_minutes = 0;
  recipe.model = {};
  return recipe;
}

/// Sets the model of that kind, as it usually is.
void choose_model(task::Recipe& recipe, const std::string& kind) {
  recipe.model.settle("model", kind, nn::architectures().at(kind).settings);
}

/// Trains it in a folder of its own, which is gone afterwards.
Result trained(Context& context, const task::Recipe& recipe, const std::string& name) {
  const ShortLivedFolder folder;
  const auto begin = std::chrono::steady_clock::now();
  bool late = false;
  train::Observer observer;
  observer.step = [&](const train::Status& status) { context.progress(name, status.step, status.steps); };
  observer.busy = [&](const std::string& what, int64_t done, int64_t of) {
    context.progress(name + ": " + what, done, of);
  };
  observer.stop = [&] {
    late = late || seconds_since(begin) > context.options().seconds;
    return late || context.options().stop();
  };
  train::Trainer trainer(recipe, observer);
  const fs::path run = trainer.begin(folder.path() / "run", "baseline").path();
  const train::Outcome outcome = trainer.run();
  Result result;
  result.metrics = outcome.test;
  // What stopped early has been tested between, without intervals.
  if (late && !outcome.finished && !context.options().stop())
    result.metrics = Run::open(run).evaluate().metrics;
  if (result.metrics.empty())
    result.note = "nothing was measured within the time";
  else if (!outcome.finished)
    result.note = fmt::format("stopped after {:.0f} s, before its end", context.options().seconds);
  const auto& outputs = context.task().outputs;
  if (outputs.size() == 1)
    result.train = last_of_training(run / "metrics.jsonl", progress_name(context.task()));
  return result;
}

/// Why nothing that learns by itself is tried on these data; "" where it is.
std::string no_training(const task::Task& task) {
  if (task.inputs.size() > 1 || task.outputs.size() > 1)
    return "is tried on recipes of one input and one output";
  if (task.outputs[0]->at_places() || task.outputs[0]->from())
    return "predicts one thing of each sample, not at places of a row";
  return "";
}

Result run_linear(Context& context) {
  const task::Task& task = context.task();
  if (const std::string why = no_training(task); !why.empty()) return not_for(why);
  task::Recipe recipe = plain_recipe(context);
  const std::string gives = task.inputs[0]->gives();
  const int64_t width = task.outputs[0]->width(), rows = context.samples(false)->count();
  recipe.train.epochs = 100;
  recipe.train.batch = 4096;
  recipe.train.optimizer.set("tolerance", 1e-4);
  recipe.train.optimizer.set("weight_decay", 1 / static_cast<double>(std::max<int64_t>(1, rows)));
  std::string note;
  if (gives == "table") {
    choose_model(recipe, "linear");
  } else if (gives == "tokens") {
    choose_model(recipe, "bag");
    // A byte says little by itself, a word much.
    nn::ModelOptions options;
    task.inputs[0]->describe(options);
    const int64_t ngrams = options.vocabulary <= 256 ? 5 : 2;
    recipe.model.set("ngrams", ngrams);
    recipe.model.set("width", int64_t{16});
    choose_optimizer(recipe, "lazy-adam");
    // The noise of numbers is soon learnt by heart.
    recipe.train.optimizer.set("lr", task.outputs[0]->classes().empty() ? 3e-3 : 1e-2);
    recipe.train.batch = 32;
    recipe.train.steps = std::max<int64_t>(300, 5 * rows / recipe.train.batch);
    note = fmt::format("of the mean of vectors of tokens and of runs of up to {}", ngrams);
  } else {
    recipe.model.layers = {"flatten", fmt::format("linear {}", width)};
    recipe.train.batch = 1024;
    note = "of all numbers of a sample";
  }
  Result result = trained(context, recipe, "linear");
  if (result.note.empty()) result.note = note;
  return result;
}

/// An architecture that is fitted to all samples, where this program has it.
Result run_fitted(Context& context, const std::string& kind) {
  const task::Task& task = context.task();
  const std::vector<std::string> fitting = task.inputs[0]->architectures();
  const bool ranks = task.outputs[0]->kind().groups && task.outputs.size() == 1 && task.inputs.size() == 1 &&
                     contains(fitting, kind);
  if (const std::string why = no_training(task); !why.empty() && !ranks) return not_for(why);
  const nn::Architecture* const architecture = nn::architectures().find(kind);
  if (!architecture) return not_for("this program was built without it");
  if (!architecture->takes.empty() && architecture->takes != task.inputs[0]->gives())
    return not_for(fmt::format("takes a {}", architecture->takes));
  task::Recipe recipe = plain_recipe(context);
  choose_optimizer(recipe, "adamw");
  choose_model(recipe, kind);
  try {
    return trained(context, recipe, kind);
  } catch (const InputError& error) {
    return not_for(error.what());
  }
}

}  // namespace

double last_of_training(const fs::path& metrics, const std::string& name) {
  std::vector<double> values;
  if (!name.empty() && fs::exists(metrics)) values = track::numbers_of(read_text(metrics), "train/" + name);
  return values.empty() ? std::numeric_limits<double>::quiet_NaN() : values.back();
}

MILLRACE_BASELINE(linear){
    .name = "linear",
    .doc = "linear or logistic regression",
    .place = 40,
    .run = run_linear,
};

MILLRACE_BASELINE(nearest_neighbours){
    .name = "nearest_neighbours",
    .doc = "what the most similar samples of training have",
    .place = 50,
    .run =
        [](Context& context) {
          const task::Task& task = context.task();
          const std::string why = no_training(task);
          return !why.empty() || task.inputs[0]->gives() == "table"
                     ? run_fitted(context, "nearest_neighbours")
                     : nearest_samples(context);
        },
};

MILLRACE_BASELINE(naive_bayes){
    .name = "naive_bayes",
    .doc = "each column by itself",
    .place = 60,
    .run = [](Context& context) { return run_fitted(context, "naive_bayes"); },
};

MILLRACE_BASELINE(boosting){
    .name = "boosting",
    .doc = "gradient-boosted trees",
    .place = 70,
    .run = [](Context& context) { return run_fitted(context, "boosting"); },
};

}  // namespace millrace::baseline
