#include "baseline/baseline.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fmt/core.h>

#include "base/file.h"
#include "base/format.h"
#include "base/seconds_since.h"
#include "base/words.h"
#include "baseline/neighbours.h"
#include "cli/evaluation_text.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "task/evaluate.h"
#include "train/run_folder.h"

namespace millrace::cli {
namespace {

struct BaselineArguments {
  std::string recipe, only;
  std::vector<std::string> overrides;
  bool json = false, list = false;
};

int list_baselines(bool json) {
  std::vector<Json> all;
  for (const baseline::BaselineKind* kind : baseline::baseline_kinds().all()) {
    if (json)
      all.push_back(json_object({{"baseline", Json(kind->name)}, {"doc", kind->doc}}));
    else
      fmt::print("  {:<20} {}\n", kind->name, kind->doc);
  }
  if (json) print_json(all);
  return 0;
}

/// "85.25 % (84.70 to 85.79)"
std::string with_interval(const eval::Measured& metric) {
  std::string text = task::metric_text(metric.name, metric.value);
  if (!std::isfinite(metric.low)) return text;
  return fmt::format("{} ({} to {})", text, metric_value(metric, metric.low),
                     metric_value(metric, metric.high));
}

std::string report_table(const baseline::Report& report) {
  std::vector<std::string> titles = {"<baseline"};
  for (const std::string& metric : report.metrics) titles.push_back(metric);
  titles.insert(titles.end(), {"seconds", "<"});
  Table table(titles);
  for (const baseline::Result& each : report.results) {
    if (each.metrics.empty()) continue;
    std::vector<std::string> row = {each.name};
    for (const std::string& metric : report.metrics) {
      std::string cell = "-";
      for (const eval::Measured& measured : each.metrics)
        if (measured.name == metric) cell = with_interval(measured);
      row.push_back(std::move(cell));
    }
    row.insert(row.end(), {fmt::format("{:.1f}", each.seconds), each.note});
    table.row(std::move(row));
  }
  return table.str();
}

/// What the strongest of those that learn says beside the weakest.
std::string report_pattern(const baseline::Report& report) {
  for (const baseline::Result& each : report.results)
    if (each.name == "boosting") return baseline::pattern(report, each.name, each.train);
  return "";
}

int run_baseline(const BaselineArguments& a) {
  if (a.list) return list_baselines(a.json);
  if (a.recipe.empty())
    fail<InputError>("which recipe? millrace baseline RECIPE, or --list for what there is");
  baseline::Options options;
  options.only = split_list(a.only);
  const auto begin = std::chrono::steady_clock::now();
  Progress progress(stderr);
  options.progress = [&](const std::string& what, int64_t done, int64_t of) {
    constexpr double silent = 2;
    if (!a.json && seconds_since(begin) > silent) progress.count(what + ": ", done, of);
  };
  options.stop = interrupted;
  const task::Recipe recipe = train::recipe_of(a.recipe, a.overrides);
  catch_interrupts();
  const baseline::Report report = baseline::measure(recipe, options);
  progress.finish();
  if (interrupted()) {
    fmt::print(stderr, "stopped: nothing is kept\n");
    return 130;
  }
  // What was asked for with changes, or in part, is not what the recipe is to be compared with.
  const std::filesystem::path kept = baseline::report_path(a.recipe);
  const bool keeps = options.only.empty() && a.overrides.empty();
  std::string trouble;
  if (keeps) try {
      write_file(kept, baseline::report_json(report) + "\n");
    } catch (const IoError& error) {
      trouble = error.what();
    }
  if (a.json) {
    fmt::print("{}\n", baseline::report_json(report));
  } else {
    fmt::print("{}: {} samples\n{}", report.data, thousands(report.rows), report_table(report));
    for (const baseline::Result& each : report.results)
      if (each.metrics.empty()) fmt::print("  {} is left out: {}\n", each.name, each.note);
    if (report.neighbours) fmt::print("  {}\n", baseline::neighbours_text(*report.neighbours));
    if (const std::string line = report_pattern(report); !line.empty()) fmt::print("  {}\n", line);
    if (keeps && trouble.empty()) fmt::print("kept in {}: millrace train compares with it\n", kept.string());
  }
  if (!trouble.empty()) fmt::print(stderr, "it is not kept for millrace train: {}\n", trouble);
  return 0;
}

Action declare_baseline(Command& command) {
  auto a = std::make_shared<BaselineArguments>();
  command.positional("RECIPE", a->recipe, "a TOML recipe", false)
      .positional("KEY=VALUE", a->overrides, "changes of the recipe, as of millrace train", false)
      .option("--only", a->only, "these baselines, their names with commas between them")
      .flag("--list", a->list, "name the baselines and what each predicts")
      .flag("--json", a->json, "print one JSON object")
      .footer(
          "Measures what costs nothing, on the same split and with the same metrics as the recipe: the "
          "constant, a "
          "rule of your own\n"
          "([baseline] heuristic), people's answers (human), linear models and others. Kept beside the "
          "recipe as "
          "NAME.baseline.json,\n"
          "with which millrace train compares its network at the end.\n\n"
          "  millrace baseline examples/adult.toml\n"
          "  millrace baseline examples/houses.toml baseline.heuristic=\"40000 * median_income\" --only "
          "heuristic\n");
  return [a] { return run_baseline(*a); };
}

}  // namespace

MILLRACE_VERB(baseline){"baseline", "measure what a network has to beat: constants, rules, linear models",
                        declare_baseline, 47};

}  // namespace millrace::cli
