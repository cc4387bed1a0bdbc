#include "cli/train.h"

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <map>
#include <unistd.h>

#include <millrace/nn.h>

#include "base/file.h"
#include "base/format.h"
#include "base/word_settings.h"
#include "baseline/baseline.h"
#include "check/check.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "data/order/order.h"
#include "data/tools/fingerprint.h"
#include "eval/metric.h"
#include "nn/layers/layer.h"
#include "nn/models/architecture.h"
#include "task/input.h"
#include "task/recipe.h"
#include "task/task_feed.h"
#include "track/log_kind.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

/// The run to go on with: the folder itself, --out, or the newest run of the recipe.
fs::path run_to_resume(const TrainArguments& a) {
  if (fs::is_directory(a.recipe)) return a.recipe;
  if (!a.out.empty()) return a.out;
  const int newest = train::newest_run(fs::path(a.recipe).stem().string());
  if (newest == 0)
    fail<InputError>("there is no run of {} in runs/ to go on with; name it with --out RUN", a.recipe);
  return train::run_path(fs::path(a.recipe).stem().string(), newest);
}

train::Observer observer_of(Progress& progress, bool json) {
  train::Observer observer;
  if (!json) {
    observer = measuring_observer(progress, false);
    observer.step = [&](const train::Status& status) {
      const bool last = status.step == status.steps;
      if (progress.due(last)) progress.update(status_line(status, progress.columns()), last);
    };
  }
  observer.stop = interrupted;
  return observer;
}

/// Fails before the data is read, rather than after, when the run folder cannot be made.
void require_writable(const fs::path& out) {
  fs::path folder = fs::absolute(out);
  std::error_code ignored;
  while (!fs::exists(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  const char* why = !fs::is_directory(folder, ignored)      ? "is no folder"
                    : ::access(folder.c_str(), W_OK | X_OK) ? "cannot be written to"
                                                            : nullptr;
  if (why)
    fail<IoError>("no run folder can be made in {}: {} {}; choose another with --out", out.string(),
                  folder.string(), why);
}

train::RunFolder start_training(std::unique_ptr<train::Trainer>& trainer, const TrainArguments& a,
                                train::Observer observer) {
  if (a.resume) {
    const train::RunFolder run = train::RunFolder::open(run_to_resume(a));
    trainer = std::make_unique<train::Trainer>(train::recipe_of(run.path()), std::move(observer));
    return trainer->resume(run, a.overrides);
  }
  if (fs::is_directory(a.recipe) && !fs::exists(fs::path(a.recipe) / "recipe.toml"))
    fail<InputError>(
        "{0} is a folder, not a recipe; millrace init {0} > recipe.toml drafts one for data there", a.recipe);
  if (fs::is_directory(a.recipe))
    fail<InputError>("{} is a folder: to go on with a run there, add --resume", a.recipe);
  const task::Recipe recipe = train::recipe_of(a.recipe, a.overrides);
  if (!a.out.empty() && fs::exists(fs::path(a.out) / "recipe.toml"))
    fail<InputError>("{} holds a run already: --resume continues it, another --out begins a new one", a.out);
  require_named(a.out, "--out");
  require_writable(a.out.empty() ? "runs" : a.out);
  trainer = std::make_unique<train::Trainer>(recipe, std::move(observer));
  const train::RunFolder run = trainer->begin(a.out, fs::path(a.recipe).stem().string());
  // So that a run that goes on by its folder alone knows what it has to beat.
  if (const fs::path kept = baseline::report_path(a.recipe); fs::is_regular_file(kept))
    write_file(baseline::report_path(run.path()), read_text(kept));
  return run;
}

/// What the network has to beat, where millrace baseline has measured that on the same samples.
std::vector<std::string> beside_baselines(const train::Trainer& trainer, const fs::path& recipe,
                                          const fs::path& run, const train::Outcome& outcome) {
  if (!outcome.finished || outcome.test.empty()) return {};
  const auto report = baseline::read_report(baseline::report_path(recipe));
  if (!report || !trainer.training().samples || !trainer.tests().samples) return {};
  if (data::fingerprint(*trainer.training().samples).digest != report->train_digest ||
      data::fingerprint(*trainer.tests().samples).digest != report->test_digest)
    return {fmt::format("baseline: {} is of other samples: millrace baseline {} measures again",
                        baseline::report_path(recipe).string(), shell_quoted(recipe.string()))};
  return baseline::compare(*report, outcome.test,
                           baseline::last_of_training(run / "metrics.jsonl", report->progress));
}

/// The short form of `millrace check`: a line for each check that does not pass.
void tell_checks(const train::Trainer& trainer, const std::string& recipe, Progress& progress) {
  bool any = false;
  for (const check::Finding& each :
       check::quick_checks(trainer.task(), trainer.training(), trainer.tests())) {
    if (each.verdict != check::Verdict::warn && each.verdict != check::Verdict::fail) continue;
    progress.print(fmt::format("check: {}: {}", each.check, each.saw));
    any = true;
  }
  if (any)
    progress.print(
        fmt::format("  millrace check {} tells more; --no-check leaves this out", shell_quoted(recipe)));
}

}  // namespace

Trained train_once(const TrainArguments& a) {
  Progress progress;
  std::unique_ptr<train::Trainer> trainer;
  const train::RunFolder run = start_training(trainer, a, observer_of(progress, a.json));
  catch_interrupts();  // before this point there is nothing to save: Ctrl-C just ends the program
  if (!a.json) progress.print(fmt::format("run folder: {}", run.path().string()));
  if (!a.json && !a.resume && !a.no_check) tell_checks(*trainer, a.recipe, progress);
  train::Outcome outcome = trainer->run();
  std::vector<std::string> beside = beside_baselines(*trainer, a.recipe, run.path(), outcome);
  if (!a.json)
    for (const std::string& line : beside) progress.print(line);
  progress.finish();
  return {run.path(), std::move(outcome), std::move(beside)};
}

namespace {

/// --sample as the key of the recipe that it stands for.
TrainArguments with_sample(TrainArguments a) {
  if (a.sample.empty()) return a;
  if (a.resume && !a.seeds)
    fail<InputError>("--sample {}: a run goes on with the samples that it was begun with; leave it out",
                     a.sample);
  a.overrides.push_back("data.sample=" + a.sample);
  return a;
}

int run_train(const TrainArguments& given) {
  const TrainArguments a = with_sample(given);
  if (a.seeds) return train_seeds(a);
  const auto [run, outcome, beside] = train_once(a);
  if (a.json) {
    std::vector<std::pair<std::string, Json>> test;
    for (const eval::Measured& metric : outcome.test) test.emplace_back(metric.name, metric.value);
    print_json(json_object({{"run", run.string()},
                            {"finished", outcome.finished},
                            {"step", outcome.step},
                            {"test", json_object(test)},
                            {"baseline", beside}}));
  } else if (outcome.finished) {
    const std::string path = shell_quoted(run.string());
    fmt::print("done: {}\n  millrace eval {}{}\n  millrace predict {} SAMPLE\n", run.string(), path,
               outcome.tested ? "" : " TEST-SET", path);
  } else {
    fmt::print("stopped at step {}, everything is saved; this goes on:\n  millrace train {} --resume\n",
               outcome.step, shell_quoted(run.string()));
  }
  return outcome.finished ? 0 : 130;
}

/// Those that take the same in one line: "tokens: bag, encoder, gpt".
std::string architectures_help() {
  std::map<std::string, std::string> lists;
  for (const nn::Architecture* kind : nn::architectures().all()) {
    if (!kind->ending.empty()) continue;  // by naming a file
    std::string& list = lists[kind->takes];
    list += (list.empty() ? "" : ", ") + kind->name;
  }
  std::string text;
  for (const auto& [takes, list] : lists)
    text += fmt::format("  {}: {}\n", takes.empty() ? "others" : takes, list);
  return text;
}

/// A line of its name or usage, and what it is.
std::string kind_help(const std::string& usage, const std::string& doc) {
  return fmt::format("  {}\n      {}\n", usage, doc);
}

/// Of kinds that are written as words: how, what each is, and what its settings mean.
template <typename Kind>
std::string kinds_help(const std::vector<const Kind*>& kinds, const std::vector<std::string>& usages) {
  std::string text;
  for (size_t i = 0; i < kinds.size(); ++i)
    text += kind_help(usages[i], kinds[i]->doc) + settings_help(kinds[i]->settings);
  return text;
}

/// What the texts of keys of inputs are made of.
std::string words_help() {
  std::string text;
  for (const task::InputKind* kind : task::input_kinds().all()) {
    if (!kind->words) continue;
    const task::SettingWords help = kind->words();
    text += fmt::format("\n{} (input.{}), of {}:\n", help.title, help.setting, kind->unit);
    for (const auto& [usage, doc, settings] : help.words)
      text += kind_help(usage, doc) + settings_help(settings);
  }
  return text;
}

std::string metrics_help() {
  std::string text;
  for (const eval::MetricKind* kind : eval::metric_kinds().all())
    text += kind_help(fmt::format("{} (of {})", kind->name, fmt::join(kind->outputs, ", ")), kind->doc);
  return text;
}

Action declare_train(Command& command) {
  auto a = std::make_shared<TrainArguments>();
  command.positional("RECIPE", a->recipe, "a TOML recipe; with --resume a run folder too")
      .positional(
          "KEY=VALUE", a->overrides,
          "changes of the recipe, e.g. train.epochs=2; with --resume those that what was trained does not "
          "depend on",
          false)
      .option("--out", a->out, "the run folder; by default runs/<recipe>-<n>")
      .option("--seeds", a->seeds,
              "train so many times, with seeds from train.seed on: is a gain more than chance?")
      .option("--sample", a->sample,
              "train on a small part that is like the whole, as 2% or 500 samples (data.sample)")
      .flag("--resume", a->resume, "go on with a stopped or killed run, as if it had never stopped")
      .flag("--no-check", a->no_check, "begin without the short form of millrace check")
      .flag("--json", a->json, "print one JSON object at the end, nothing else")
      .footer(
          "  millrace train examples/letters.toml\n"
          "  millrace train examples/cifar10.toml train.epochs=2 train.optimizer.lr=0.3\n"
          "  millrace train runs/cifar10-1 --resume\n"
          "  millrace train examples/letters.toml --seeds 5\n"
          "  millrace train examples/cifar10.toml --sample 2%\n\n"
          "Ctrl-C, or closing the terminal, saves a checkpoint; a second Ctrl-C stops at once. "
          "${MILLRACE_DATA} in "
          "a recipe is\n"
          "the data folder, by default ../shared/data.\n\n"
          "Keys of a recipe:\n" +
          task::recipe_help() + "\nModels (model.kind), by what they take:\n" + architectures_help() +
          "\nLayers (model.layers):\n" + kinds_help(nn::layers::kinds().all(), nn::layer_kinds()) +
          words_help() + "\nOrders (data.order):\n" +
          kinds_help(data::order_kinds().all(), data::order_usages()) + "\nMetrics (eval.metrics):\n" +
          metrics_help() + "\nLogs (train.log):\n" +
          kinds_help(track::log_kinds().all(), track::log_usages()));
  return [a] { return run_train(*a); };
}

}  // namespace

MILLRACE_VERB(train){"train", "train a model by a recipe", declare_train, 50};

}  // namespace millrace::cli
